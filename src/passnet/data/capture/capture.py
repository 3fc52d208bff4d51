"""Capture of a net: Dynamo traces it, and each graph becomes a `Graph`."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
import torch.fx
import torch.nn.attention

from passnet.data.capture.trace import Segment, Trace
from passnet.errors import CaptureError
from passnet.graph.fx.from_fx import Sampler, is_fake, program_from_fx, spec_from_tensor
from passnet.graph.spec import Graph, Program, TensorSpec
from passnet.graph.values.effects import alias_classes, written_values
from passnet.graph.values.fake import SYMBOL_ANNOTATION
from passnet.inductor.compiler import reset_dynamo


@dataclass(frozen=True)
class CapturedGraph:
    """A graph with the values of its arguments at capture, in the order of its parameters."""

    graph: Graph
    values: tuple[Any, ...]


def capture(net: Callable[..., Any], *inputs: Any, **kwargs: Any) -> list[Graph]:
    """Return the graphs of a net, as torch.compile sees them. The net runs once, without gradients,
    in the mode that it is in. Parameters and buffers become arguments. A net with graph breaks
    gives several graphs, in the order in which they ran.

    Raises:
        CaptureError: the net fails on these inputs, or nothing of it could be traced.

    Examples:
        >>> import torch
        >>> [graph] = capture(torch.nn.Linear(4, 2), torch.ones(1, 4))
        >>> [op.target for op in graph.program.ops]
        ['torch._C._nn.linear']
    """
    return [captured.graph for captured in capture_values(net, *inputs, **kwargs)]


def capture_values(net: Callable[..., Any], *inputs: Any, **kwargs: Any) -> list[CapturedGraph]:
    """Return the graphs of a net, with the values that their arguments had."""
    return trace_graphs(net, inputs, kwargs)


def trace_graphs(
    net: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    sample: Sampler | None = None,
) -> list[CapturedGraph]:
    """Return the graphs of a net; `sample` gives some values of a tensor without its own."""
    graphs: list[CapturedGraph] = []

    def keep(segment: Segment) -> None:
        graphs.append(module_graph(segment.module, segment.arguments, sample))

    try:
        Trace(net, keep).run(args, kwargs)
    finally:
        reset_dynamo()
    return graphs


def module_graph(
    module: torch.fx.GraphModule, arguments: list[Any], sample: Sampler | None = None
) -> CapturedGraph:
    """Return a traced module as a graph; `sample` gives some values of fake tensors.

    Raises:
        CaptureError: an argument is no tensor or has an unknown dtype, or the graph writes into
            memory that two arguments share.
    """
    graph = copy.deepcopy(module.graph)
    string_to_backend: Any = torch.nn.attention._backend_from_string
    for node in reversed(list(graph.nodes)):  # users come before the switches that they use
        if node.target in _SWITCHES or (node.target is string_to_backend and not node.users):
            graph.erase_node(node)
    values = _lift_attributes(graph, module, list(arguments))
    program = program_from_fx(graph)
    _check_shared_memory(program, values)
    params = list(program.params)
    specs = []
    for index, (param, value) in enumerate(zip(params, values, strict=True)):
        if isinstance(value, torch.Tensor):
            specs.append(spec_from_tensor(param.name, value, sample))
            if is_fake(value):
                is_parameter = isinstance(value, torch.nn.Parameter)
                kind = "torch.nn.parameter.Parameter" if is_parameter else "torch.Tensor"
                params[index] = type(param)(param.name, kind)
        elif isinstance(value, (int, torch.SymInt)):
            params[index] = type(param)(param.name, SYMBOL_ANNOTATION)
            specs.append(TensorSpec(param.name, (), "int64", data=(int(value),)))
        else:
            raise CaptureError(f"argument {param.name} is a {type(value).__name__}, not a tensor")
    program = type(program)(tuple(params), program.body, program.outputs)
    return CapturedGraph(Graph(program, tuple(specs)), tuple(values))


def _check_shared_memory(program: Program, values: Sequence[Any]) -> None:
    """Refuse a write into memory of two arguments: a graph's arguments are independent."""
    classes = alias_classes(program.ops)
    written = {classes.find(name) for op in program.ops for name in written_values(op)}
    memory = {
        param.name: span
        for param, value in zip(program.params, values, strict=True)
        if isinstance(value, torch.Tensor) and (span := _memory_span(value)) is not None
    }
    for name, (storage, start, stop) in memory.items():
        if classes.find(name) not in written:
            continue
        for other, (other_storage, other_start, other_stop) in memory.items():
            overlap = start < other_stop and other_start < stop
            if other != name and other_storage == storage and overlap:
                raise CaptureError(
                    f"the graph writes into argument {name}, which shares memory with argument "
                    f"{other}; a graph's arguments are independent"
                )


def _memory_span(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """Return a tensor's storage, with the first and the end of the bytes in it; None if empty."""
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    start = int(tensor.storage_offset())
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    stop = start + sum((int(size) - 1) * int(stride) for size, stride in pairs) + 1
    size = tensor.element_size()
    return tensor.untyped_storage()._cdata, start * size, stop * size


_SWITCHES = {torch.nn.attention._sdpa_kernel, torch._C._functorch.set_inplace_requires_grad_allowed}
"""Calls that select kernels or permit a trace, and change no result."""


def held_tensors(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """Return the tensors that a graph holds, in the order of its later arguments."""
    return list(_held(module).values())


def _held(module: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    names = [str(node.target) for node in module.graph.nodes if node.op == "get_attr"]
    held: dict[str, torch.Tensor] = {}
    for name in dict.fromkeys(names):
        tensor: Any = attrgetter(name)(module)
        if not isinstance(tensor, torch.Tensor):
            raise CaptureError(f"the graph holds a {type(tensor).__name__} as {name}")
        held[name] = tensor
    return held


def _lift_attributes(
    graph: torch.fx.Graph, module: torch.fx.GraphModule, values: list[Any]
) -> list[Any]:
    """Turn the tensors that `module` holds into graph arguments; return all values."""
    first_op = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
    held = _held(module)
    with graph.inserting_before(first_op):
        lifted = {name: graph.placeholder(name.replace(".", "_")) for name in held}
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        node.replace_all_uses_with(lifted[str(node.target)])
        graph.erase_node(node)
    values = [*values, *held.values()]
    num_params = sum(node.op == "placeholder" for node in graph.nodes)
    assert len(values) == num_params, "one value for each argument"
    return values
