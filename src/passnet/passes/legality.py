"""Whether a match may be replaced: nothing leaks or circles, no write is lost or reordered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.passes.graph_index import GraphIndex, stale_reads
from passnet.passes.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern in a graph: `nodes` maps every node of the pattern to the graph's node, or to the
    literal for a parameter that stands for one.

    `calls` maps the matched calls of the graph back to those of the pattern, in its order; `first`
    and `last` are their ends in the graph. `dependents` are the nodes outside the match, between
    its ends, that depend on it; in order.
    """

    pattern: Pattern
    nodes: dict[torch.fx.Node, Any]
    calls: dict[torch.fx.Node, torch.fx.Node]
    first: torch.fx.Node
    last: torch.fx.Node
    dependents: tuple[torch.fx.Node, ...]


def make_match(pattern: Pattern, nodes: dict[torch.fx.Node, Any]) -> Match:
    """The match for a complete assignment of a pattern's nodes."""
    calls: dict[torch.fx.Node, torch.fx.Node] = {nodes[node]: node for node in pattern.body}
    first, last = min(calls), max(calls)
    dependents: dict[torch.fx.Node, None] = {}
    node = first
    while node is not last:
        node = node.next
        sources = node.all_input_nodes
        if node not in calls and any(source in calls or source in dependents for source in sources):
            dependents[node] = None
    return Match(pattern, nodes, calls, first, last, tuple(dependents))


@dataclass(frozen=True, slots=True)
class MatchRefusal:
    """Why a match may not be replaced, in the terms of a miss."""

    pattern_node: torch.fx.Node
    node: torch.fx.Node
    expected: str
    actual: str
    reason: str


def refusal(match: Match, index: GraphIndex) -> MatchRefusal | None:
    """None when the match may be replaced by one call at the place of its last node.

    The rules, for the matched calls M with first node `lo` and last node `hi`:

    - a value made in M that the pattern does not return is used in M only;
    - no value that a parameter stands for is made in M or depends on a value made in M;
    - between `lo` and `hi` nothing outside M writes into what M touches, or switches a state;
    - the nodes in between that depend on M, and so come after it once it is replaced, keep their
      order with every write;
    - a write made by M is seen by nobody outside M, except through what the pattern returns;
    - what M reads or returns under an older name than that of a write into it, the pattern does;
    - a returned value that may share memory with an outside value, or with another that is
      returned, is not written to later.
    """
    return (
        _leak(match)
        or _circle(match)
        or _interference(match, index)
        or _reordered(match, index)
        or _lost_write(match, index)
        or _stale_read(match, index)
        or _written_view(match, index)
    )


def _leak(match: Match) -> MatchRefusal | None:
    for node, pattern_node in match.calls.items():
        leaks = [user for user in node.users if user not in match.calls]
        if leaks and pattern_node not in match.pattern.outputs:
            return MatchRefusal(
                pattern_node,
                node,
                "a value used only inside the match",
                f"a use by {leaks[0].name}",
                "the value leaks; let the pattern return it",
            )
    return None


def _circle(match: Match) -> MatchRefusal | None:
    for param in match.pattern.params:
        values: list[torch.fx.Node] = []
        torch.fx.map_arg(match.nodes.get(param), values.append)
        for node in values:
            if node in match.calls or node in match.dependents:
                return MatchRefusal(
                    param,
                    node,
                    "a value from before the match",
                    f"{node.name}, computed from it",
                    "the match would need its own result",
                )
    return None


def _touched(nodes: Iterable[torch.fx.Node], index: GraphIndex) -> set[object]:
    return {index.group(value) for node in nodes for value in (node, *node.all_input_nodes)}


def _interference(match: Match, index: GraphIndex) -> MatchRefusal | None:
    def is_between(node: torch.fx.Node) -> bool:
        return match.first < node < match.last and node not in match.calls

    last = match.calls[match.last], match.last
    writers = [node for node in index.writers if is_between(node)]
    groups = _touched(match.calls, index) if writers else set()
    for writer in writers:
        if index.group(writer) in groups:
            return MatchRefusal(
                *last,
                "no other write in between",
                f"{writer.name} writes",
                "a value of the match is written to in between",
            )
    for node in index.switches:
        if is_between(node):
            return MatchRefusal(*last, "no switch in between", node.name, "a state is switched")
    return None


def _reordered(match: Match, index: GraphIndex) -> MatchRefusal | None:
    dependents = match.dependents
    writers = [node for node in index.writers if dependents and match.first <= node <= match.last]
    staying: list[torch.fx.Node] = []
    node = match.first
    while writers and node is not match.last:
        if node not in match.calls and node not in dependents:
            staying.append(node)
        node = node.next
    for writer in writers:
        if writer in dependents:
            passed = [node for node in staying if writer < node]
        else:
            passed = [node for node in dependents if node < writer]
        for node in passed:
            if index.group(writer) in _touched([node], index):
                return MatchRefusal(
                    match.calls[match.last],
                    match.last,
                    f"{node.name} on its side of a write",
                    f"{writer.name} writes",
                    "a call that uses the match would trade places with a write",
                )
    return None


def _lost_write(match: Match, index: GraphIndex) -> MatchRefusal | None:
    for writer in index.writers:
        if writer not in match.calls:
            continue
        members = index.members(index.group(writer))
        views = _views_of_results(writer, members, match)
        for value in members:
            if value in match.calls or value in views:
                continue
            readers = [user for user in value.users if user not in match.calls and writer < user]
            if value.op in ("placeholder", "get_attr") or readers:
                use = f"read by {readers[0].name}" if readers else "an argument of the graph"
                return MatchRefusal(
                    match.calls[writer],
                    writer,
                    "a write nobody else sees",
                    f"{value.name}, {use}",
                    "the call writes into a value from outside the match",
                )
    return None


def _views_of_results(
    writer: torch.fx.Node, members: Iterable[torch.fx.Node], match: Match
) -> set[torch.fx.Node]:
    """The values made after a write of views of nothing but what the match returns: they will be
    views of what takes its place.
    """
    sharing = set(members)
    views: set[torch.fx.Node] = set()
    for value in sorted(sharing):
        if value not in match.calls and writer <= value:
            sources = [source for source in value.all_input_nodes if source in sharing]
            if sources and all(source in match.calls or source in views for source in sources):
                views.add(value)
    return views


def _stale_read(match: Match, index: GraphIndex) -> MatchRefusal | None:
    nodes = match.nodes
    reads = stale_reads(index, match.calls)
    expected = set()
    for writer, value, reader in match.pattern.stale:
        if reader or any(user not in match.calls for user in nodes[value].users):
            expected.add((nodes[writer], nodes[value], reader and nodes[reader]))
    differing = reads ^ expected
    if not differing:  # the pattern cannot know that two of its parameters share written memory
        values = [nodes[param] for param in match.pattern.params if param in nodes]
        groups = [index.group(value) for value in values if isinstance(value, torch.fx.Node)]
        differing = {read for read in reads if groups.count(index.group(read[0])) > 1}
    if not differing:
        return None
    writer, value, _ = min(differing, key=lambda read: read[:2])
    return MatchRefusal(
        match.calls[writer],
        writer,
        "the same writes, seen under the same names",
        f"{value.name}, used again after the write",
        "the graph and the pattern differ in what a write changes",
    )


def _written_view(match: Match, index: GraphIndex) -> MatchRefusal | None:
    later = [node for node in index.writers if node not in match.calls and match.last < node]
    for output in match.pattern.outputs if later else ():
        result = match.nodes[output]
        group = index.group(result)
        is_shared = any(
            (value not in match.calls and value < result)
            or (match.calls.get(value) in match.pattern.outputs and value is not result)
            for value in index.members(group)
        )
        for writer in later:
            if is_shared and index.group(writer) == group:
                return MatchRefusal(
                    output,
                    result,
                    "no write to it later",
                    f"{writer.name} writes",
                    "the value may share memory with one that the match does not make",
                )
    return None
