"""In which order a pattern's parameters stand for the values of a graph that it was cut from.

Two halves of a pattern may be the same calls on other values, as a rotary embedding of query and
key. Then the pattern matches with the halves exchanged, if the search comes upon them that way, and
a replacement gets its arguments, and owes its results, in another order than they were cut in.
"""

from dataclasses import dataclass

import torch.fx

from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, Program, refs
from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.match import each_match
from passnet.passes.match.matched import Match
from passnet.passes.match.pattern import make_pattern


@dataclass(frozen=True, slots=True)
class ParameterOrder:
    """For each parameter of a pattern the argument of the range that it stands for, by number; and
    for each of its results that of the range.
    """

    arguments: tuple[int, ...]
    results: tuple[int, ...]


def parameter_orders(cut: Graph, parent: Program, start: int) -> list[ParameterOrder]:
    """The orders in which a range's pattern is found where it was cut out, the plain one first.

    The range is from `cut_range` of `parent`, in single-assignment form, and begins at op `start`.
    """
    pattern = make_pattern("piece", build(cut.program))
    matches: list[Match] = []
    each_match(pattern, GraphIndex(build(parent).graph), matches.append)
    outputs = cut.program.outputs
    arguments = {spec.original_name: number for number, spec in enumerate(cut.tensors)}
    ops = {op.output: start + number for number, op in enumerate(cut.program.ops)}
    results = {ops[name]: number for number, arg in enumerate(outputs) for name in refs(arg)}
    names = [op.output for op in parent.ops]
    orders = [ParameterOrder(tuple(range(len(cut.tensors))), tuple(range(len(outputs))))]
    for match in matches:
        nodes = [match.nodes.get(param) for param in pattern.params]
        order = ParameterOrder(
            tuple(arguments.get(_value_name(node, names), -1) for node in nodes),
            tuple(results.get(_op_number(match.nodes[node]), -1) for node in pattern.outputs),
        )
        if -1 not in (*order.arguments, *order.results) and order not in orders:
            orders.append(order)
    return orders


def _op_number(node: torch.fx.Node) -> int:
    return node.meta["custom"]["op"] if "custom" in node.meta else -1


def _value_name(node: object, names: list[str | None]) -> str | None:
    """The name of a value in the program that a module was built of, by the names of its ops."""
    if not isinstance(node, torch.fx.Node):
        return None
    return str(node.target) if node.op == "placeholder" else names[_op_number(node)]
