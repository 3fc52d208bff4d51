"""Re-targeting of a graph to another device, as data."""

import re
from dataclasses import replace

from passnet.graph.spec import Arg, Device, Graph, Op, Program, Sequence

_DEVICE_TEXT = re.compile(r"(cpu|cuda)(:\d+)?")
_TAKES_DEVICE_TEXT = ("Tensor.to", "torch.amp.autocast_mode._enter_autocast")


def retarget(graph: Graph, kind: str, index: int | None = None) -> Graph:
    """The same graph with every device literal and every argument on one device.

    Device objects change wherever they stand; device text ("cuda:0") changes as a `device=`
    keyword and as an argument of `Tensor.to` and of autocast. `kind` is "cpu" or "cuda", `index`
    the number of the device among its kind; None is the current one.
    """
    device = Device(kind, index)
    program = graph.program
    body = tuple(
        _retargeted_op(statement, device) if isinstance(statement, Op) else statement
        for statement in program.body
    )
    outputs = tuple(_retargeted(arg, device, False) for arg in program.outputs)
    tensors = tuple(replace(spec, device=_device_text(device)) for spec in graph.tensors)
    return Graph(Program(program.params, body, outputs), tensors)


def _device_text(device: Device) -> str:
    return device.kind if device.index is None else f"{device.kind}:{device.index}"


def _retargeted_op(op: Op, device: Device) -> Op:
    takes_text = op.target in _TAKES_DEVICE_TEXT
    args = tuple(_retargeted(arg, device, takes_text) for arg in op.args)
    kwargs = tuple(
        (name, _retargeted(arg, device, takes_text or name == "device")) for name, arg in op.kwargs
    )
    return replace(op, args=args, kwargs=kwargs)


def _retargeted(arg: Arg, device: Device, takes_text: bool) -> Arg:
    if isinstance(arg, Device):
        return device
    if isinstance(arg, str) and takes_text and _DEVICE_TEXT.fullmatch(arg):
        return _device_text(device)
    if isinstance(arg, Sequence):
        return Sequence(arg.kind, tuple(_retargeted(inner, device, False) for inner in arg.items))
    return arg
