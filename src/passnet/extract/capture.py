"""Capture of a net: Dynamo traces it, and every graph it finds becomes a `Graph`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch._dynamo
import torch.fx

from passnet.errors import CaptureError
from passnet.extract.trace import Segment, Trace
from passnet.graph.fake import SYMBOL_ANNOTATION
from passnet.graph.from_fx import program_from_fx
from passnet.graph.from_tensor import Sampler, is_fake, spec_from_tensor
from passnet.graph.spec import Graph, TensorSpec


@dataclass(frozen=True)
class CapturedGraph:
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


def capture_values(net: Callable[..., Any], *inputs: Any, **kwargs: Any) -> list[CapturedGraph]:
    """The same as `capture`, with the values that the arguments of each graph had."""
    found: list[CapturedGraph] = []
    trace = Trace(net, lambda segment: found.append(segment_graph(segment)))
    try:
        trace.run(inputs, kwargs)
    finally:
        torch._dynamo.reset()
    return found


def segment_graph(segment: Segment, sample: Sampler | None = None) -> CapturedGraph:
    """The graph that Dynamo found, with what its arguments are.

    Args:
        segment: before its first call.
        sample: gives some values of a tensor that has none of its own.

    Raises:
        CaptureError: the graph holds what a `Graph` cannot.
    """
    return module_graph(segment.module, segment.arguments, sample)


def module_graph(
    module: torch.fx.GraphModule, arguments: list[Any], sample: Sampler | None = None
) -> CapturedGraph:
    """A traced module as a graph, with what its arguments are.

    Args:
        module: stays as it is.
        arguments: of the module.
        sample: gives some values of a tensor that has none of its own.

    Raises:
        CaptureError: the module holds what a `Graph` cannot.
    """
    graph = copy.deepcopy(module.graph)
    values = _lift_attributes(graph, module, list(arguments))
    program = program_from_fx(graph)
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


def held_tensors(module: torch.fx.GraphModule) -> list[torch.Tensor]:
    """The tensors that a graph holds itself, in the order in which they become arguments."""
    return list(_held(module).values())


def _held(module: torch.fx.GraphModule) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for node in module.graph.nodes:
        if node.op == "get_attr" and str(node.target) not in found:
            value: Any = module
            for part in str(node.target).split("."):
                value = getattr(value, part)
            if not isinstance(value, torch.Tensor):
                raise CaptureError(f"the graph holds a {type(value).__name__} as {node.target}")
            found[str(node.target)] = value
    return found


def _lift_attributes(
    graph: torch.fx.Graph, module: torch.fx.GraphModule, values: list[Any]
) -> list[Any]:
    """Make the tensors that `module` holds for the graph arguments of it; all values in order."""
    last = [node for node in graph.nodes if node.op == "placeholder"]
    first_op = next(node for node in graph.nodes if node.op not in ("placeholder", "get_attr"))
    held = _held(module)
    lifted = {}
    for name in held:
        with graph.inserting_before(first_op):
            lifted[name] = graph.placeholder(name.replace(".", "_"))
    for node in [item for item in graph.nodes if item.op == "get_attr"]:
        node.replace_all_uses_with(lifted[str(node.target)])
        graph.erase_node(node)
    values = [*values, *held.values()]
    assert len(values) == len(last) + len(lifted), "one value for each argument"
    return values
