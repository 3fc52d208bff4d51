"""What matching needs to know of a graph: calls in normal form, by what they call, and effects."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
import torch.fx

from passnet.graph.effects import AliasClasses, has_state, may_alias
from passnet.graph.from_fx import function_name
from passnet.passes.normalise import Call, normalise

REPLACEMENT = "passnet_replacement"
"""Key in a node's `meta` that marks the calls that passes put in."""


class GraphIndex:
    """Calls, alias groups and writing nodes of a graph, kept up to date while it is rewritten."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.calls: dict[torch.fx.Node, Call] = {}
        self._by_key: dict[Any, list[torch.fx.Node]] = defaultdict(list)
        self.writers: list[torch.fx.Node] = []
        self.switches: list[torch.fx.Node] = []
        self._aliases = AliasClasses()
        for node in graph.nodes:
            if node.op in ("call_function", "call_method"):
                self._add(node)
        self._members: dict[Any, list[torch.fx.Node]] = defaultdict(list)
        for node in graph.nodes:
            self._members[self._aliases.find(node)].append(node)

    def _add(self, node: torch.fx.Node) -> None:
        call = normalise(node)
        self.calls[node] = call
        self._by_key[call.key].append(node)
        target = f"Tensor.{node.target}" if node.op == "call_method" else _name(node)
        if call.writes:
            self.writers.append(node)
        if has_state(target):
            self.switches.append(node)
        if call.writes or may_alias(target):
            self._aliases.join([node, *_first_values(node)])
        if dict(call.arguments).get("training") is True and target.endswith("_norm"):
            self.writers.append(node)  # updates its running statistics
            self._aliases.join([node, *node.all_input_nodes])

    def with_key(self, key: Any) -> list[torch.fx.Node]:
        """The calls of one callable that are still in the graph, in order."""
        return [node for node in self._by_key.get(key, ()) if node in self.calls]

    def group(self, node: torch.fx.Node) -> Any:
        """What identifies the values that may share memory with a node's."""
        return self._aliases.find(node)

    def members(self, group: Any) -> list[torch.fx.Node]:
        """The values of a group."""
        return self._members[group]

    def replaced(self, old: list[torch.fx.Node], new: list[torch.fx.Node]) -> None:
        """Forget the nodes of a match and learn those put in for it, which write nothing."""
        gone = set(old)
        for node in old:
            del self.calls[node]
            self._members[self.group(node)].remove(node)
        self.writers = [node for node in self.writers if node not in gone]
        for node in new:
            self._members[self.group(node)].append(node)
            for user in node.users:  # their arguments are other nodes now
                if user in self.calls:
                    self.calls[user] = normalise(user)


def _name(node: torch.fx.Node) -> str:
    try:
        return function_name(node.target)  # type: ignore[arg-type]
    except (RuntimeError, AttributeError):
        return repr(node.target)


def _first_values(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The values in a call's first argument (a list of tensors has several)."""
    if not node.args:
        return list(node.all_input_nodes)
    found: list[torch.fx.Node] = []
    torch.fx.map_arg(node.args[0], found.append)
    return found
