"""One match of a pattern in a graph: what stands for what, its ends, and what depends on it."""

from dataclasses import dataclass
from typing import Any

import torch.fx

from passnet.passes.match.pattern import Pattern


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
