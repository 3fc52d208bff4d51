"""Apply passes to a graph: put one call to a replacement in the place of every match."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.errors import PassError
from passnet.passes.graph_index import REPLACEMENT, GraphIndex
from passnet.passes.legality import tainted
from passnet.passes.match import Match, Miss, each_match
from passnet.passes.pattern import Pass


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass did to one graph: how often it matched, or its nearest miss."""

    name: str
    num_matches: int
    miss: Miss | None = None


@dataclass(frozen=True)
class Site:
    """One replaced match: the new call, the pass, and what the pattern's parameters stand for: a
    value of the graph, a literal, or `UNREAD`.
    """

    node: torch.fx.Node
    source: Pass
    inputs: tuple[Any, ...]


UNREAD = object()
"""Stands for a parameter that the pattern does not read."""


def apply_passes(
    module: torch.fx.GraphModule, passes: Sequence[Pass]
) -> tuple[list[PassReport], list[Site]]:
    """Rewrite a graph module in place: every pass in order, at all matches, until none is left.

    Returns:
        A report for each pass, and the places that were rewritten.

    Raises:
        PassError: a replacement's arguments cannot be made.
    """
    reports: list[PassReport] = []
    sites: list[Site] = []
    index = GraphIndex(module.graph)
    renamed: dict[torch.fx.Node, torch.fx.Node] = {}
    for item in passes:
        num_matches, miss = _apply(item, index, sites, renamed)
        found = num_matches
        while found:  # with a write replaced, what was not legal may be
            index = GraphIndex(module.graph)
            found, _ = _apply(item, index, sites, renamed)
            num_matches += found
        reports.append(PassReport(item.name, num_matches, miss))
    if sites:
        module.graph.lint()
        module.recompile()
    return reports, [_current(site, renamed) for site in sites]


def _apply(
    item: Pass,
    index: GraphIndex,
    sites: list[Site],
    renamed: dict[torch.fx.Node, torch.fx.Node],
) -> tuple[int, Miss | None]:
    """One search for a pass, whose matches are replaced and added to `sites`."""

    def replace(match: Match) -> None:
        sites.append(_replace(item, match, index, renamed))

    return each_match(item.pattern, index, replace)


def _current(site: Site, renamed: dict[torch.fx.Node, torch.fx.Node]) -> Site:
    """A site whose inputs are nodes of the final graph, where later passes replaced some."""
    inputs = []
    for node in site.inputs:
        while isinstance(node, torch.fx.Node) and node in renamed:
            node = renamed[node]
        inputs.append(node)
    return Site(site.node, site.source, tuple(inputs))


def _replace(
    item: Pass,
    match: Match,
    index: GraphIndex,
    renamed: dict[torch.fx.Node, torch.fx.Node],
) -> Site:
    graph = index.graph
    inside = match.inside(item.pattern)
    as_keys = {node: wanted for wanted, node in match.nodes.items() if wanted.op != "placeholder"}
    first, last = min(inside), max(inside)
    late = tainted(as_keys, first, last)
    inputs = tuple(match.nodes.get(param, UNREAD) for param in item.pattern.params)
    with graph.inserting_after(last):
        anchor = graph.call_function(_no_op)
    with graph.inserting_before(anchor):
        args = _arguments(item, inputs, graph)
        call = graph.call_function(_named(item.replacement.function), args)
        call.meta[REPLACEMENT] = item.name
        results = _results(item, call, graph)
    graph.erase_node(anchor)
    after = results[-1]
    for node in late:
        after.append(node)
        after = node
    outputs = [match.nodes[wanted] for wanted in item.pattern.outputs]
    for old, result in zip(outputs, results, strict=True):
        if "example_value" in old.meta:
            result.meta["example_value"] = old.meta["example_value"]
        old.replace_all_uses_with(result)
        renamed[old] = result
    for node in sorted(inside, reverse=True):
        graph.erase_node(node)
    index.replaced(inside, dict(zip(outputs, results, strict=True)))
    return Site(call, item, inputs)


def _no_op() -> None:
    """Marks a place in the graph for as long as it takes to insert there."""


def _arguments(item: Pass, inputs: tuple[Any, ...], graph: torch.fx.Graph) -> tuple[Any, ...]:
    """What `replacement_args` returns, with its own calls (if any) copied into the graph."""
    values: dict[torch.fx.Node, Any] = {}
    remaining = iter(inputs)
    result: Any = None
    for node in item.replacement.args_graph.nodes:
        if node.op == "placeholder":
            value = next(remaining)
            if value is not UNREAD:
                values[node] = value
            elif node.users:
                raise PassError(
                    f"{item.name}: replacement_args uses {node.target}, which the pattern does not"
                )
        elif node.op == "output":
            result = node.args[0]
        else:
            values[node] = graph.node_copy(node, values.__getitem__)
    items = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return torch.fx.map_arg(items, values.__getitem__)


def _results(item: Pass, call: torch.fx.Node, graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The nodes that stand for the pattern's outputs, in order."""
    if not item.pattern.returns_tuple:
        return [call]
    if len(item.pattern.outputs) == 1:
        return [graph.call_function(only, (call,))]
    return [
        graph.call_function(operator.getitem, (call, position))
        for position in range(len(item.pattern.outputs))
    ]


def only(result: Any) -> Any:
    """The result of a replacement whose pattern returns a tuple of one: bare, or in a tuple."""
    return result[0] if isinstance(result, (tuple, list)) else result


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """The callable itself, or a function around it where it has no name that code could use."""
    if getattr(function, "__name__", "<lambda>").isidentifier() and hasattr(function, "__module__"):
        return function

    def replacement(*args: Any) -> Any:
        return function(*args)

    return replacement
