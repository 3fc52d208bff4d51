"""Whether a match may be replaced: nothing leaks or circles, no write is lost or reordered."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.fx

from passnet.passes.graph_index import GraphIndex
from passnet.passes.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a match may not be replaced, in the terms of a miss."""

    wanted: torch.fx.Node
    node: torch.fx.Node
    expected: str
    found: str
    reason: str


def refusal(
    pattern: Pattern, nodes: dict[torch.fx.Node, torch.fx.Node], index: GraphIndex
) -> Refusal | None:
    """None when the match may be replaced by one call at the place of its last node.

    The rules, for the matched calls M with first node `lo` and last node `hi`:

    - a value made in M that the pattern does not return is used in M only;
    - no value from outside M that M reads depends on a value made in M;
    - between `lo` and `hi` nothing outside M writes into what M touches, or switches a state;
    - a write made by M is seen by nobody outside M, except through what the pattern returns;
    - a returned value that may be a view of an outside value is not written to later.
    """
    inside = {nodes[node]: node for node in pattern.body}
    first, last = min(inside), max(inside)
    return (
        _leak(pattern, nodes, inside)
        or _circle(inside, first, last)
        or _interference(inside, index, first, last)
        or _lost_write(inside, index)
        or _written_view(pattern, nodes, inside, index)
    )


Inside = dict[torch.fx.Node, torch.fx.Node]


def _leak(
    pattern: Pattern, nodes: dict[torch.fx.Node, torch.fx.Node], inside: Inside
) -> Refusal | None:
    for wanted in pattern.body:
        if wanted in pattern.outputs:
            continue
        for user in nodes[wanted].users:
            if user not in inside:
                return Refusal(
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
    node = first.next
    while node is not last and node.op != "output":
        if node not in inside and any(source in marked for source in node.all_input_nodes):
            marked.add(node)
            found.append(node)
        node = node.next
    return found


def _circle(inside: Inside, first: torch.fx.Node, last: torch.fx.Node) -> Refusal | None:
    dependent = set(tainted(inside, first, last))
    for node, wanted in inside.items():
        for source in node.all_input_nodes:
            if source in dependent:
                return Refusal(
                    wanted,
                    node,
                    "inputs from before the match",
                    f"{source.name}, computed from it",
                    "the match would need its own result",
                )
    return None


def _touched(inside: Inside, index: GraphIndex) -> set[object]:
    values = set(inside)
    for node in inside:
        values.update(node.all_input_nodes)
    return {index.group(node) for node in values}


def _interference(
    inside: Inside, index: GraphIndex, first: torch.fx.Node, last: torch.fx.Node
) -> Refusal | None:
    between = [node for node in index.writers if first < node < last and node not in inside]
    groups = _touched(inside, index) if between else set()
    for node in between:
        if index.group(node) in groups:
            return Refusal(
                inside[last],
                last,
                "no other write in between",
                f"{node.name} writes",
                "a value of the match is written to in between",
            )
    for node in index.switches:
        if first < node < last and node not in inside:
            return Refusal(
                inside[last], last, "no switch in between", node.name, "a state is switched"
            )
    return None


def _lost_write(inside: Inside, index: GraphIndex) -> Refusal | None:
    for node in index.writers:
        wanted = inside.get(node)
        if wanted is None:
            continue
        for other in index.members(index.group(node)):
            if other in inside:
                continue
            seen_by = [user for user in other.users if user not in inside and node < user]
            if other.op == "placeholder" or seen_by:
                who = "an argument of the graph" if not seen_by else f"read by {seen_by[0].name}"
                return Refusal(
                    wanted,
                    node,
                    "a write nobody else sees",
                    f"{other.name}, {who}",
                    "the call writes into a value from outside the match",
                )
    return None


def _written_view(
    pattern: Pattern,
    nodes: dict[torch.fx.Node, torch.fx.Node],
    inside: Inside,
    index: GraphIndex,
) -> Refusal | None:
    last = max(inside)
    for wanted in pattern.outputs:
        group = index.group(nodes[wanted])
        outside = [
            other
            for other in (index.members(group) if index.writers else ())
            if other not in inside and other < nodes[wanted]
        ]
        for node in index.writers:
            if outside and node not in inside and last < node and index.group(node) == group:
                return Refusal(
                    wanted,
                    nodes[wanted],
                    "no write to it later",
                    f"{node.name} writes",
                    "the value may be a view of one from outside the match",
                )
    return None
