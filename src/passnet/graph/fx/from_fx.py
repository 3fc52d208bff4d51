"""A torch.fx.Graph, as Dynamo makes it, to a `Program`."""

import keyword
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx

from passnet.errors import GraphError
from passnet.graph.fx.operators import IN_PLACE_TEXT
from passnet.graph.spec import (
    Alias,
    Arg,
    Device,
    Op,
    Param,
    Program,
    Ref,
    Sequence,
    Slice,
    Statement,
    TorchName,
)
from passnet.graph.text.parse import RESERVED


def target_name(node: torch.fx.Node) -> str:
    """How a `Program` names what a node calls.

    Raises:
        GraphError: the node calls no function or method (a submodule, say).
    """
    if node.op == "call_method":
        name = "abs" if node.target == "__abs__" else node.target  # the builtin, up to torch 2.11
        return f"Tensor.{name}"
    if node.op == "call_function":
        return function_name(node.target)  # type: ignore[arg-type]
    raise GraphError(f"node {node.name}: {node.op} {node.target} has no place in a graph")


_NAMES: dict[Any, str] = {getattr: "getattr", operator.abs: "torch.abs"}


def function_name(function: Callable[..., Any]) -> str:
    """The dotted name of a function of torch or of `operator`."""
    name = _NAMES.get(function)
    if name is None:
        name = torch.fx.node._get_qualified_name(function)
        if name.startswith("_operator."):
            name = "operator." + name.removeprefix("_operator.")
        _NAMES[function] = name
    return name


def program_from_fx(graph: torch.fx.Graph) -> Program:
    """The program that an fx graph describes; placeholders become parameters under their targets.

    Raises:
        GraphError: the graph holds submodules, attributes, or arguments that are no literals.
    """
    return _Converter().program(graph)


class _Converter:
    def __init__(self) -> None:
        self._names: dict[torch.fx.Node, str] = {}
        self._used: set[str] = set(RESERVED)

    def program(self, graph: torch.fx.Graph) -> Program:
        params: list[Param] = []
        body: list[Statement] = []
        outputs: tuple[Arg, ...] = ()
        order = {node: index for index, node in enumerate(graph.nodes)}
        for node in graph.nodes:
            if node.op == "placeholder":
                params.append(Param(self._name(node, str(node.target)), _annotation(node)))
            elif node.op == "output":
                value = node.args[0]
                values = value if isinstance(value, (tuple, list)) else (value,)
                outputs = self._args(values, node)
            else:
                body.extend(self._statements(node, order))
        return Program(tuple(params), tuple(body), outputs)

    def _name(self, node: torch.fx.Node, target: str) -> str:
        base = target if target.isidentifier() and not keyword.iskeyword(target) else node.name
        name, number = base, 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        self._names[node] = name
        return name

    def _statements(self, node: torch.fx.Node, order: dict[torch.fx.Node, int]) -> list[Statement]:
        target = target_name(node)
        args = self._args(node.args, node)
        kwargs = tuple((name, self._arg(value, node)) for name, value in node.kwargs.items())
        if target == "operator.setitem" and not node.users:
            return [Op(None, target, args, kwargs)]
        first = node.args[0] if node.args else None
        name = self._name(node, node.name)
        in_place = target.removeprefix("operator.") in IN_PLACE_TEXT
        # `x += y` gives the name x to the result, which is the same tensor; the call form is kept
        # where the old x is read again, since x could be a number.
        is_last_use = isinstance(first, torch.fx.Node) and all(
            order[user] <= order[node] for user in first.users
        )
        if in_place and is_last_use and isinstance(args[0], Ref):
            return [Op(args[0].name, target, args, kwargs), Alias(name, args[0].name)]
        return [Op(name, target, args, kwargs)]

    def _args(self, values: Iterable[Any], node: torch.fx.Node) -> tuple[Arg, ...]:
        return tuple(self._arg(value, node) for value in values)

    def _arg(self, value: Any, node: torch.fx.Node) -> Arg:
        if isinstance(value, torch.fx.Node):
            return Ref(self._names[value])
        if isinstance(value, (tuple, list)):
            is_size = isinstance(value, torch.Size)
            kind = "size" if is_size else "tuple" if isinstance(value, tuple) else "list"
            return Sequence(kind, self._args(value, node))
        if isinstance(value, slice):
            return Slice(*self._args((value.start, value.stop, value.step), node))
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return TorchName(str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return Device(value.type, value.index)
        if value is None or value is ... or isinstance(value, (bool, int, float, str)):
            return value
        raise GraphError(
            f"node {node.name}: argument {value!r} of type {type(value).__name__} is no literal"
        )


def _annotation(node: torch.fx.Node) -> str | None:
    if node.type is None:
        return None
    name = getattr(node.type, "__qualname__", str(node.type))
    return f"{node.type.__module__}.{name}" if hasattr(node.type, "__module__") else name
