"""A torch.fx.GraphModule from a `Program`, with allow-listed targets only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from passnet.errors import GraphError, boundary
from passnet.graph import spec
from passnet.graph.fx.targets import check_targets, resolve

if TYPE_CHECKING:
    import torch

MAX_DEVICE_INDEX = 127
"""Largest device index; torch counts in eight bits and reads 2**32 as 0."""


def build(program: spec.Program, where: str = "model.py") -> torch.fx.GraphModule:
    """Build the graph module of a program, with its arguments in order.

    Nodes carry the index of their op in `meta["custom"]["op"]`. A target that is not allowed or
    unknown to this torch, or a malformed graph, is a GraphError.
    """
    import torch

    check_targets(program, where)
    graph = torch.fx.Graph()
    values: dict[str, torch.fx.Node] = {}
    for param in program.params:
        values[param.name] = graph.placeholder(param.name)
    num_ops = 0
    for statement in program.body:
        if isinstance(statement, spec.Release):
            continue
        if isinstance(statement, spec.Alias):
            values[statement.output] = values[statement.source]
            continue
        try:
            node = _node(graph, statement, values)
        except GraphError as cause:
            raise GraphError(f"{where}:{statement.line}: {cause}") from cause
        node.meta["custom"] = {"op": num_ops}
        num_ops += 1
        if statement.output is not None:
            values[statement.output] = node
    graph.output(tuple(_value(arg, values) for arg in program.outputs))
    with boundary(GraphError, f"{where}: torch cannot write the graph as code"):
        return torch.fx.GraphModule(torch.nn.Module(), graph)


def op_number(node: torch.fx.Node) -> int | None:
    """Return the index of a node's op in its program; None for arguments and the output."""
    return (node.meta.get("custom") or {}).get("op")


def _node(graph: torch.fx.Graph, op: spec.Op, values: dict[str, torch.fx.Node]) -> torch.fx.Node:
    args = tuple(_value(arg, values) for arg in op.args)
    kwargs = {name: _value(arg, values) for name, arg in op.kwargs}
    if op.target.startswith("Tensor."):
        method = op.target.removeprefix("Tensor.")
        return graph.create_node("call_method", method, args, kwargs, name=op.output)
    return graph.create_node("call_function", resolve(op.target), args, kwargs, name=op.output)


def _value(arg: spec.Arg, values: dict[str, torch.fx.Node]) -> Any:
    if isinstance(arg, spec.Ref):
        return values[arg.name]
    if isinstance(arg, spec.Sequence):
        values_inside = [_value(inner, values) for inner in arg.items]
        return values_inside if arg.kind == "list" else tuple(values_inside)
    if isinstance(arg, spec.Slice):
        return slice(*(_value(part, values) for part in (arg.start, arg.stop, arg.step)))
    if not isinstance(arg, (spec.TorchName, spec.Device)):
        return arg
    import torch

    if isinstance(arg, spec.TorchName):
        return getattr(torch, arg.name)
    if arg.index is not None and arg.index > MAX_DEVICE_INDEX:
        raise GraphError(f"device {arg.kind!r}, index {arg.index}: above {MAX_DEVICE_INDEX}")
    try:
        return torch.device(arg.kind, *(() if arg.index is None else (arg.index,)))
    except (RuntimeError, ValueError) as cause:
        raise GraphError(f"device {arg.kind!r}, index {arg.index}: {cause}") from cause
