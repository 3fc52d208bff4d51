"""In which order a pattern's parameters stand for the values of a graph that it was cut from.

Two halves of a pattern may be the same calls on other values, as a rotary embedding of query and
key. Then the pattern matches with the halves exchanged, if the search comes upon them that way, and
a replacement gets its arguments, and owes its results, in another order than they were cut in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch.fx

from passnet.graph.build import build
from passnet.graph.spec import Graph, Program, refs
from passnet.passes.graph_index import GraphIndex
from passnet.passes.legality import Match
from passnet.passes.match import each_match
from passnet.passes.pattern import make_pattern


@dataclass(frozen=True, slots=True)
class Order:
    """For each parameter of a pattern the argument of the piece that it stands for, by number; and
    for each of its results that of the piece.
    """

    arguments: tuple[int, ...]
    results: tuple[int, ...]


def orders(cut: Graph, parent: Program, start: int) -> list[Order]:
    """The orders in which a piece's pattern is found where it was cut out, the plain one first.

    Args:
        cut: the piece, from `cut_range` of `parent`.
        parent: a program in single-assignment form.
        start: the op of it with which the piece begins.
    """
    module = build(cut.program)
    pattern = make_pattern("piece", module)
    index = GraphIndex(build(parent).graph)
    found: list[Match] = []
    each_match(pattern, index, found.append)
    plain = Order(tuple(range(len(cut.tensors))), tuple(range(len(cut.program.outputs))))
    names = {item.original_name: number for number, item in enumerate(cut.tensors)}
    results = {
        _op_of(cut, name) + start: number
        for number, arg in enumerate(cut.program.outputs)
        for name in refs(arg)
    }
    made = [op.output for op in parent.ops]
    known = [plain]
    for match in found:
        arguments = []
        for param in pattern.params:
            node = match.nodes.get(param)
            value = _value(node, made) if isinstance(node, torch.fx.Node) else None
            arguments.append(names.get(value, -1))
        places = [results.get(_op(match.nodes[item]), -1) for item in pattern.outputs]
        order = Order(tuple(arguments), tuple(places))
        if -1 not in (*order.arguments, *order.results) and order not in known:
            known.append(order)
    return known


def _op(node: torch.fx.Node) -> int:
    return node.meta["custom"]["op"] if "custom" in node.meta else -1


def _op_of(cut: Graph, name: str) -> int:
    return next(number for number, op in enumerate(cut.program.ops) if op.output == name)


def _value(node: torch.fx.Node, made: list[str | None]) -> str | None:
    """The name of a value in the program that a module was built of."""
    return str(node.target) if node.op == "placeholder" else made[_op(node)]
