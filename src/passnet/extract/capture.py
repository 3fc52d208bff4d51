"""Capture of a net: Dynamo traces it, and every graph it finds becomes a `Graph`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
import torch.fx

from passnet.errors import CaptureError, boundary
from passnet.graph.fake import SYMBOL_ANNOTATION
from passnet.graph.from_fx import program_from_fx
from passnet.graph.meta import DTYPE_BYTES
from passnet.graph.spec import Graph, TensorSpec

MAX_DATA_ELEMENTS = 64
"""Integer arguments of up to this many elements are recorded with their values."""


@dataclass(frozen=True)
class Captured:
    """A graph with the values of its arguments at capture, in the order of its parameters."""

    graph: Graph
    values: tuple[Any, ...]


def capture(net: Callable[..., Any], *inputs: Any, **kwargs: Any) -> list[Graph]:
    """The graphs of a net, as torch.compile sees them.

    The net is traced through `torch.compile` by a backend that only looks, so that it runs once,
    without gradients. Parameters and buffers become arguments. A net with graph breaks gives
    several graphs, in the order in which they ran.

    Args:
        net: a module (put it into the mode you mean: `net.eval()`) or a function of tensors.
        inputs: what to call it with, by position.
        **kwargs: what to call it with, by name.

    Raises:
        CaptureError: the net fails on these inputs, or nothing of it could be traced.

    Examples:
        >>> import torch
        >>> [graph] = capture(torch.nn.Linear(4, 2), torch.ones(1, 4))
        >>> [op.target for op in graph.program.ops]
        ['torch._C._nn.linear']
    """
    return [item.graph for item in capture_values(net, *inputs, **kwargs)]


def capture_values(net: Callable[..., Any], *inputs: Any, **kwargs: Any) -> list[Captured]:
    """The same as `capture`, with the values that the arguments of each graph had."""
    found: list[Captured] = []

    def look(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        found.append(_captured(module, example_inputs))
        return module.forward

    torch._dynamo.reset()
    try:
        with boundary(CaptureError, f"capturing {type(net).__name__}"), torch.no_grad():
            torch.compile(net, backend=look, dynamic=False)(*inputs, **kwargs)
    finally:
        torch._dynamo.reset()
    if not found:
        raise CaptureError(
            f"capturing {type(net).__name__}: Dynamo found no tensor op to trace; "
            "is the net a torch.nn.Module that computes on its inputs?"
        )
    return found


def _captured(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Captured:
    graph = copy.deepcopy(module.graph)  # Dynamo goes on using its own
    values = _lift_attributes(graph, module, list(example_inputs))
    program = program_from_fx(graph)
    params = list(program.params)
    specs = []
    for index, (param, value) in enumerate(zip(params, values, strict=True)):
        if isinstance(value, torch.Tensor):
            specs.append(describe(param.name, value))
        elif isinstance(value, (int, torch.SymInt)):
            params[index] = type(param)(param.name, SYMBOL_ANNOTATION)
            specs.append(TensorSpec(param.name, (), "int64", data=(int(value),)))
        else:
            raise CaptureError(f"argument {param.name} is a {type(value).__name__}, not a tensor")
    program = type(program)(tuple(params), program.body, program.outputs)
    return Captured(Graph(program, tuple(specs)), tuple(values))


def _lift_attributes(
    graph: torch.fx.Graph, module: torch.fx.GraphModule, values: list[Any]
) -> list[Any]:
    """Make the tensors that `module` holds for the graph arguments of it; all values in order."""
    last = [node for node in graph.nodes if node.op == "placeholder"]
    first_op = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
    lifted: dict[str, torch.fx.Node] = {}
    for node in [item for item in graph.nodes if item.op == "get_attr"]:
        name = str(node.target)
        if name not in lifted:
            value: Any = module
            for part in name.split("."):
                value = getattr(value, part)
            if not isinstance(value, torch.Tensor):
                raise CaptureError(f"the graph holds a {type(value).__name__} as {name}")
            with graph.inserting_before(first_op):
                lifted[name] = graph.placeholder(name.replace(".", "_"))
            values.append(value)
        node.replace_all_uses_with(lifted[name])
        graph.erase_node(node)
    assert len(values) == len(last) + len(lifted), "one value for each argument"
    return values


def describe(name: str, value: torch.Tensor) -> TensorSpec:
    """What is recorded of a tensor: shape, dtype, device, and statistics where it has values.

    Floats get mean and standard deviation, integers their range and, when few, their values; a
    scalar always keeps its value.
    """
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES:
        raise CaptureError(f"argument {name} has dtype {dtype}, which graphs cannot hold")
    shape = tuple(int(size) for size in value.shape)
    mean = std = low = high = data = None
    plain = value.detach()
    if not _is_fake(plain) and plain.numel():
        if plain.dtype.is_floating_point:
            wide = plain.double()
            mean = _number(wide.mean())
            std = _number(wide.std(correction=0))
        elif not plain.dtype.is_complex:
            low, high = int(plain.min()), int(plain.max())
        few = plain.numel() <= MAX_DATA_ELEMENTS and not plain.dtype.is_floating_point
        if (few or plain.dim() == 0) and not plain.dtype.is_complex:
            data = tuple(plain.reshape(-1).tolist())
    keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
    if low is not None:
        keys += ("min_val", "max_val")
    return TensorSpec(name, shape, dtype, str(value.device), mean, std, low, high, data, keys=keys)


def _is_fake(value: torch.Tensor) -> bool:
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor) or value.is_meta


def _number(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if number == number and abs(number) != float("inf") else None
