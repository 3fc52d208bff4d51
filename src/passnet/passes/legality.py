"""Whether a match may be replaced: nothing leaks or circles, no write is lost or reordered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.fx

from passnet.passes.graph_index import GraphIndex, stale_reads
from passnet.passes.pattern import Pattern


@dataclass(frozen=True, slots=True)
class MatchRefusal:
    """Why a match may not be replaced, in the terms of a miss."""

    wanted: torch.fx.Node
    node: torch.fx.Node
    expected: str
    found: str
    reason: str


def refusal(
    pattern: Pattern, nodes: dict[torch.fx.Node, torch.fx.Node], index: GraphIndex
) -> MatchRefusal | None:
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
    inside = {nodes[node]: node for node in pattern.body}
    first, last = min(inside), max(inside)
    late = tainted(inside, first, last)
    return (
        _leak(pattern, nodes, inside)
        or _circle(pattern, nodes, inside, late)
        or _interference(inside, index, first, last)
        or _reordered(inside, late, index, first, last)
        or _lost_write(inside, index)
        or _stale_read(pattern, nodes, inside, index)
        or _written_view(pattern, nodes, inside, index)
    )


Inside = dict[torch.fx.Node, torch.fx.Node]


def _leak(
    pattern: Pattern, nodes: dict[torch.fx.Node, torch.fx.Node], inside: Inside
) -> MatchRefusal | None:
    for wanted in pattern.body:
        if wanted in pattern.outputs:
            continue
        for user in nodes[wanted].users:
            if user not in inside:
                return MatchRefusal(
                    wanted,
                    nodes[wanted],
                    "a value used only inside the match",
                    f"a use by {user.name}",
                    "the value leaks; let the pattern return it",
                )
    return None


def tainted(inside: Inside, first: torch.fx.Node, last: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes outside a match, between its ends, that depend on it; in order."""
    found: list[torch.fx.Node] = []
    marked: set[torch.fx.Node] = set(inside)
    node = first
    while node is not last:
        node = node.next
        if node not in inside and any(source in marked for source in node.all_input_nodes):
            marked.add(node)
            found.append(node)
    return found


def _circle(
    pattern: Pattern,
    nodes: dict[torch.fx.Node, torch.fx.Node],
    inside: Inside,
    late: list[torch.fx.Node],
) -> MatchRefusal | None:
    dependent = {*inside, *late}
    for param in pattern.params:
        values: list[torch.fx.Node] = []
        torch.fx.map_arg(nodes.get(param), values.append)
        for node in values:
            if node in dependent:
                return MatchRefusal(
                    param,
                    node,
                    "a value from before the match",
                    f"{node.name}, computed from it",
                    "the match would need its own result",
                )
    return None


def _touched(nodes: Iterable[torch.fx.Node], index: GraphIndex) -> set[object]:
    values = set(nodes)
    for node in nodes:
        values.update(node.all_input_nodes)
    return {index.group(node) for node in values}


def _interference(
    inside: Inside, index: GraphIndex, first: torch.fx.Node, last: torch.fx.Node
) -> MatchRefusal | None:
    between = [node for node in index.writers if first < node < last and node not in inside]
    groups = _touched(inside, index) if between else set()
    for node in between:
        if index.group(node) in groups:
            return MatchRefusal(
                inside[last],
                last,
                "no other write in between",
                f"{node.name} writes",
                "a value of the match is written to in between",
            )
    for node in index.switches:
        if first < node < last and node not in inside:
            return MatchRefusal(
                inside[last], last, "no switch in between", node.name, "a state is switched"
            )
    return None


def _reordered(
    inside: Inside,
    late: list[torch.fx.Node],
    index: GraphIndex,
    first: torch.fx.Node,
    last: torch.fx.Node,
) -> MatchRefusal | None:
    writers = [node for node in index.writers if late and first <= node <= last]
    staying: list[torch.fx.Node] = []
    node = first
    while writers and node is not last:
        if node not in inside and node not in late:
            staying.append(node)
        node = node.next
    for node in writers:
        if node in late:
            passed = [other for other in staying if node < other]
        else:
            passed = [other for other in late if other < node]
        for other in passed:
            if index.group(node) in _touched([other], index):
                return MatchRefusal(
                    inside[last],
                    last,
                    f"{other.name} on its side of a write",
                    f"{node.name} writes",
                    "a call that uses the match would trade places with a write",
                )
    return None


def _lost_write(inside: Inside, index: GraphIndex) -> MatchRefusal | None:
    for node in index.writers:
        wanted = inside.get(node)
        if wanted is None:
            continue
        members = index.members(index.group(node))
        through = _seen_through_results(node, members, inside)
        for other in members:
            if other in inside or other in through:
                continue
            seen_by = [user for user in other.users if user not in inside and node < user]
            if other.op in ("placeholder", "get_attr") or seen_by:
                who = "an argument of the graph" if not seen_by else f"read by {seen_by[0].name}"
                return MatchRefusal(
                    wanted,
                    node,
                    "a write nobody else sees",
                    f"{other.name}, {who}",
                    "the call writes into a value from outside the match",
                )
    return None


def _seen_through_results(
    writer: torch.fx.Node, members: Iterable[torch.fx.Node], inside: Inside
) -> set[torch.fx.Node]:
    """The values made after a write of views of nothing but what the match returns: they will be
    views of what takes its place.
    """
    sharing = set(members)
    through: set[torch.fx.Node] = set()
    for other in sorted(sharing):
        if other in inside or other < writer:
            continue
        sources = [item for item in other.all_input_nodes if item in sharing]
        if sources and all(item in inside or item in through for item in sources):
            through.add(other)
    return through


def _stale_read(
    pattern: Pattern,
    nodes: dict[torch.fx.Node, torch.fx.Node],
    inside: Inside,
    index: GraphIndex,
) -> MatchRefusal | None:
    found = stale_reads(index, inside)
    expected = set()
    for writer, value, reader in pattern.stale:
        if reader or any(user not in inside for user in nodes[value].users):
            expected.add((nodes[writer], nodes[value], reader and nodes[reader]))
    differing = found ^ expected
    if not differing:  # the pattern cannot know that two of its parameters share written memory
        given = [nodes[item] for item in pattern.params if item in nodes]
        groups = [index.group(item) for item in given if isinstance(item, torch.fx.Node)]
        differing = {item for item in found if groups.count(index.group(item[0])) > 1}
    if not differing:
        return None
    writer, value, _ = min(differing, key=lambda item: item[:2])
    return MatchRefusal(
        inside[writer],
        writer,
        "the same writes, seen under the same names",
        f"{value.name}, used again after the write",
        "the graph and the pattern differ in what a write changes",
    )


def _written_view(
    pattern: Pattern,
    nodes: dict[torch.fx.Node, torch.fx.Node],
    inside: Inside,
    index: GraphIndex,
) -> MatchRefusal | None:
    last = max(inside)
    for wanted in pattern.outputs:
        group = index.group(nodes[wanted])
        shared = [
            other
            for other in (index.members(group) if index.writers else ())
            if (other not in inside and other < nodes[wanted])
            or (inside.get(other) in pattern.outputs and other is not nodes[wanted])
        ]
        for node in index.writers:
            if shared and node not in inside and last < node and index.group(node) == group:
                return MatchRefusal(
                    wanted,
                    nodes[wanted],
                    "no write to it later",
                    f"{node.name} writes",
                    "the value may share memory with one that the match does not make",
                )
    return None
