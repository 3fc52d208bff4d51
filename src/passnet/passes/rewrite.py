"""Apply passes to a graph: put one call to a replacement in the place of every match."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.fx

from passnet.errors import PassError
from passnet.passes.graph_index import REPLACEMENT, GraphIndex
from passnet.passes.legality import Match
from passnet.passes.match import Miss, each_match
from passnet.passes.pattern import Pass, Pattern


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
        A report for each pass, and the matches that were replaced.

    Raises:
        PassError: a replacement's arguments cannot be made.
    """
    rewriting = _Rewriting(module.graph)
    reports = [rewriting.apply(pass_) for pass_ in passes]
    if rewriting.sites:
        module.graph.lint()
        module.recompile()
    return reports, [rewriting.current(site) for site in rewriting.sites]


class _Rewriting:
    """A graph under passes: its index, the sites so far, and what stands for replaced outputs."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.sites: list[Site] = []
        self._index = GraphIndex(graph)
        self._renamed: dict[torch.fx.Node, torch.fx.Node] = {}

    def apply(self, pass_: Pass) -> PassReport:
        """Replace all matches of a pass, until none is left."""
        replace = partial(self._replace, pass_)
        num_matches, miss = each_match(pass_.pattern, self._index, replace)
        num_new = num_matches
        while num_new:  # with a write replaced, what was not legal may be
            self._index = GraphIndex(self._index.graph)
            num_new, _ = each_match(pass_.pattern, self._index, replace)
            num_matches += num_new
        return PassReport(pass_.name, num_matches, miss)

    def current(self, site: Site) -> Site:
        """A site whose inputs are nodes of the graph as it is, where later passes replaced some."""
        inputs = []
        for value in site.inputs:
            while isinstance(value, torch.fx.Node) and value in self._renamed:
                value = self._renamed[value]
            inputs.append(value)
        return Site(site.node, site.source, tuple(inputs))

    def _replace(self, pass_: Pass, match: Match) -> None:
        graph = self._index.graph
        inputs = tuple(match.nodes.get(param, UNREAD) for param in match.pattern.params)
        with graph.inserting_before(match.last.next):
            args = _arguments(pass_, inputs, graph)
            call = graph.call_function(_named(pass_.replacement), args)
            call.meta[REPLACEMENT] = pass_.name
            results = _results(match.pattern, call, graph)
        previous = results[-1]
        for node in match.dependents:
            previous.append(node)
            previous = node
        outputs = [match.nodes[output] for output in match.pattern.outputs]
        for output, result in zip(outputs, results, strict=True):
            if "example_value" in output.meta:
                result.meta["example_value"] = output.meta["example_value"]
            output.replace_all_uses_with(result)
            self._renamed[output] = result
        for node in sorted(match.calls, reverse=True):
            graph.erase_node(node)
        self._index.replaced(list(match.calls), dict(zip(outputs, results, strict=True)))
        self.sites.append(Site(call, pass_, inputs))


def _arguments(pass_: Pass, inputs: tuple[Any, ...], graph: torch.fx.Graph) -> tuple[Any, ...]:
    """What `replacement_args` returns, with its own calls (if any) copied into the graph."""
    values: dict[torch.fx.Node, Any] = {}
    remaining = iter(inputs)
    result: Any = None
    for node in pass_.args_graph.nodes:
        if node.op == "placeholder":
            value = next(remaining)
            if value is not UNREAD:
                values[node] = value
            elif node.users:
                raise PassError(
                    f"{pass_.name}: replacement_args uses {node.target}, which the pattern does not"
                )
        elif node.op == "output":
            result = node.args[0]
        else:
            values[node] = graph.node_copy(node, lambda value: values[value])
    args = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return torch.fx.map_arg(args, lambda value: values[value])


def _results(pattern: Pattern, call: torch.fx.Node, graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """The nodes that stand for the pattern's outputs, in order."""
    num_outputs = len(pattern.outputs)
    if not pattern.returns_tuple:
        return [call]
    if num_outputs == 1:
        return [graph.call_function(only, (call,))]
    return [graph.call_function(operator.getitem, (call, index)) for index in range(num_outputs)]


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
