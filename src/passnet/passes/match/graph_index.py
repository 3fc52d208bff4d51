"""An index of a graph for matching: its calls in normal form, by target, and their effects."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.graph.values import effects
from passnet.passes.match.normalise import CanonicalCall, callable_name, normalise

REPLACEMENT = "passnet_replacement"
"""Key in a node's `meta` that marks the calls that passes put in."""

WRITTEN_BACK = "passnet_written_back"
"""Key in a node's `meta` that marks the copies of results into values; no pattern begins there."""

_OF_TORCH = ("torch.", "Tensor.", "operator.")


class GraphIndex:
    """Calls of a graph, its alias groups, and the calls that write, switch a state or draw numbers.

    It is kept up to date while the graph is rewritten.
    """

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.calls: dict[torch.fx.Node, CanonicalCall] = {}
        self._by_key: dict[Any, list[torch.fx.Node]] = defaultdict(list)
        self.writers: list[torch.fx.Node] = []
        self.switches: list[torch.fx.Node] = []
        self.drawing: list[torch.fx.Node] = []
        self._aliases = effects.AliasClasses()
        for node in graph.nodes:
            if node.op in ("call_function", "call_method") and REPLACEMENT not in node.meta:
                self._add(node)
        self._members: dict[Any, list[torch.fx.Node]] = defaultdict(list)
        for node in graph.nodes:
            self._members[self._aliases.find(node)].append(node)
        self._unused = unused_calls(list(self.calls), self._does_more)

    def _add(self, node: torch.fx.Node) -> None:
        call = normalise(node)
        self.calls[node] = call
        if WRITTEN_BACK not in node.meta:
            self._by_key[call.key].append(node)
        target = _target(node)
        written_values = _written_values(node, call)
        if written_values:
            self.writers.append(node)
        if effects.has_state(target):
            self.switches.append(node)
        if effects.draws(target, dict(call.arguments)):
            self.drawing.append(node)
        if effects.last_name(target) in effects.SHARES_ALL:
            self._aliases.join([node, *node.all_input_nodes])
        elif effects.may_alias(target):
            self._aliases.join([node, *first_values(node)])
        self._aliases.join([node, *written_values])

    def _does_more(self, node: torch.fx.Node) -> bool:
        """Return whether a call has, or may have, an effect besides its result."""
        target = _target(node)
        is_known = (
            target.startswith(_OF_TORCH) and not effects.is_random(target) and not node.is_impure()
        )
        return not is_known or node in self.writers or node in self.switches

    def is_unused(self, node: torch.fx.Node) -> bool:
        """Return whether a call has no effect and no user."""
        return node in self._unused

    def unused_behind(self, nodes: Collection[torch.fx.Node]) -> list[torch.fx.Node]:
        """Return the unused calls that depend on some nodes."""
        reached = dict.fromkeys(nodes)
        for node in (queue := list(nodes)):
            new = [user for user in node.users if user in self._unused and user not in reached]
            reached.update(dict.fromkeys(new))
            queue += new
        return [node for node in reached if node not in nodes]

    def with_key(self, key: Any) -> list[torch.fx.Node]:
        """Return the calls of one callable that are still in the graph, in order."""
        return [node for node in self._by_key.get(key, ()) if node in self.calls]

    def group(self, node: torch.fx.Node) -> Any:
        """Return the identity of the values that may share memory with a node's."""
        return self._aliases.find(node)

    def members(self, group: Any) -> list[torch.fx.Node]:
        """Return the values of a group."""
        return self._members[group]

    def replaced(
        self, old: list[torch.fx.Node], results: dict[torch.fx.Node, torch.fx.Node]
    ) -> None:
        """Forget a match's nodes, and let each output's successor share its memory."""
        for node in old:
            del self.calls[node]
            self._members[self.group(node)].remove(node)
        self.writers = [node for node in self.writers if node in self.calls]
        for output, node in results.items():
            if node in self.calls:  # a copy that stands for several outputs
                continue
            self._aliases.join([output, node])
            self._members[self.group(node)].append(node)
            if WRITTEN_BACK in node.meta:
                self.calls[node] = normalise(node)
                self.writers.append(node)
            for user in node.users:  # their arguments are other nodes now
                if user in self.calls:
                    self.calls[user] = normalise(user)


def unused_calls(
    calls: Sequence[torch.fx.Node], does_more: Callable[[torch.fx.Node], bool]
) -> set[torch.fx.Node]:
    """Return the calls without a needed result, in graph order; skip calls that `does_more`."""
    unused: set[torch.fx.Node] = set()
    for node in reversed(calls):
        if all(user in unused for user in node.users) and not does_more(node):
            unused.add(node)
    return unused


def _target(node: torch.fx.Node) -> str:
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    return callable_name(node.target)  # type: ignore[arg-type]


def touched(nodes: Iterable[torch.fx.Node], index: GraphIndex) -> set[object]:
    """Return the groups of the values that some calls read, write or make."""
    return {index.group(value) for node in nodes for value in (node, *node.all_input_nodes)}


StaleRead: TypeAlias = tuple[torch.fx.Node, torch.fx.Node, torch.fx.Node | None]


def stale_reads(index: GraphIndex, inside: Collection[torch.fx.Node]) -> set[StaleRead]:
    """Return uses of a value under an older name than that of a write into it.

    `relu_(x); return x` has one, `return relu_(x)` none. Each is the writer, the value and its
    user; None for a user outside of the nodes `inside`.
    """
    reads: set[StaleRead] = set()
    for writer in index.writers:
        if writer not in inside:
            continue
        for value in index.members(index.group(writer)):
            for user in value.users if value < writer else ():
                if writer < user and (user in inside or value in inside):
                    reads.add((writer, value, user if user in inside else None))
    return reads


def _written_values(node: torch.fx.Node, call: CanonicalCall) -> list[torch.fx.Node]:
    """Return the values that a call writes into."""
    arguments = dict(call.arguments)
    values = first_values(node) if call.writes else []
    torch.fx.map_arg(arguments.get("out"), values.append)
    if arguments.get("training") is True or arguments.get("use_input_stats") is True:
        for name in ("running_mean", "running_var"):
            torch.fx.map_arg(arguments.get(name), values.append)
    if arguments.get("max_norm") is not None:  # of an embedding or a bag, which renorms its rows
        torch.fx.map_arg(arguments.get("weight"), values.append)
    return [*values, *_written_by_schema(node)]


def _written_by_schema(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the values that an op of the dispatcher says it writes, all of a call of Triton."""
    target: Any = node.target
    values: list[torch.fx.Node] = []
    if isinstance(target, torch._ops.HigherOrderOperator):
        return node.all_input_nodes if "mutation" in target.name() else []
    if isinstance(target, torch._ops.OpOverloadPacket):
        target = getattr(target, target.overloads()[0])
    if isinstance(target, torch._ops.OpOverload):
        for number, argument in enumerate(target._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = node.args[number] if number < len(node.args) else None
                torch.fx.map_arg(node.kwargs.get(argument.name, given), values.append)
    return values


def first_values(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Return the values in a call's first argument (several for a list of tensors)."""
    values: list[torch.fx.Node] = []
    torch.fx.map_arg(node.args[:1] or node.kwargs, values.append)
    return values
