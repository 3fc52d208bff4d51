"""Re-targeting of a graph to another device, as data."""

from __future__ import annotations

import re
from dataclasses import replace

from passnet.graph.spec import Arg, Device, Graph, Op, Program, Sequence

_DEVICE_TEXT = re.compile(r"(cpu|cuda)(:\d+)?")
_TAKES_DEVICE_TEXT = ("Tensor.to", "torch.amp.autocast_mode._enter_autocast")


def retarget(graph: Graph, kind: str, index: int | None = None) -> Graph:
    """The same graph with every device literal and every argument on one device.

    Device objects change wherever they stand; device text ("cuda:0") changes as a `device=`
    keyword and as an argument of `Tensor.to` and of autocast.

    Args:
        graph: what to move.
        kind: "cpu" or "cuda".
        index: number of the device among its kind; None is the current one.
    """
    device = Device(kind, index)
    body = tuple(_op(item, device) if isinstance(item, Op) else item for item in graph.program.body)
    outputs = tuple(_arg(item, device, False) for item in graph.program.outputs)
    text = kind if index is None else f"{kind}:{index}"
    return Graph(
        Program(graph.program.params, body, outputs),
        tuple(replace(item, device=text) for item in graph.tensors),
    )


def _op(op: Op, device: Device) -> Op:
    takes_text = op.target in _TAKES_DEVICE_TEXT
    args = tuple(_arg(item, device, takes_text) for item in op.args)
    kwargs = tuple(
        (name, _arg(item, device, takes_text or name == "device")) for name, item in op.kwargs
    )
    return replace(op, args=args, kwargs=kwargs)


def _arg(arg: Arg, device: Device, takes_text: bool) -> Arg:
    if isinstance(arg, Device):
        return device
    if isinstance(arg, str) and takes_text and _DEVICE_TEXT.fullmatch(arg):
        return device.kind if device.index is None else f"{device.kind}:{device.index}"
    if isinstance(arg, Sequence):
        return Sequence(arg.kind, tuple(_arg(item, device, False) for item in arg.items))
    return arg
