"""Search for a pattern in a graph: every place where it stands, or the place nearest to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx

from passnet.passes.graph_index import GraphIndex
from passnet.passes.legality import refusal
from passnet.passes.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Match:
    """One place where a pattern stands: the graph's node for every node of the pattern, or the
    literal for a parameter that stands for one.
    """

    nodes: dict[torch.fx.Node, Any]

    def inside(self, pattern: Pattern) -> list[torch.fx.Node]:
        """The matched calls of the graph, in the order of the pattern."""
        return [self.nodes[node] for node in pattern.body]


@dataclass(frozen=True, slots=True)
class Miss:
    """Why a pattern was not found, at the place where it came nearest.

    `num_matched` of `num_calls` calls agreed there; `call` is the pattern's call that did not,
    `node` the node of the graph it was compared with (None when there was none).
    """

    pattern: str
    num_matched: int
    num_calls: int
    call: str
    node: str | None
    expected: str
    found: str
    reason: str

    def sentence(self) -> str:
        """The miss in one line."""
        place = f" at node {self.node}" if self.node else ""
        return (
            f"{self.pattern}: {self.num_matched} of {self.num_calls} calls agree, then {self.call}"
            f"{place}: {self.reason}: expected {self.expected}, found {self.found}"
        )


class _Attempt:
    """A partial assignment of pattern nodes to graph nodes."""

    def __init__(self, search: _Search, nodes: dict, taken: set) -> None:
        self._search = search
        self.nodes: dict[torch.fx.Node, Any] = nodes
        self.taken: set[torch.fx.Node] = taken

    def copy(self) -> _Attempt:
        return _Attempt(self._search, dict(self.nodes), set(self.taken))

    def unify(self, wanted: torch.fx.Node, node: Any) -> bool:
        """Let a pattern node stand for a graph node, and their arguments likewise."""
        if wanted in self.nodes:
            bound = self.nodes[wanted]
            if bound is node or (not isinstance(node, torch.fx.Node) and _same(bound, node)):
                return True
            return self._fail(
                wanted, node, _show(bound), _show(node), "it stood for another before"
            )
        if wanted.op == "placeholder":
            return self._parameter(wanted, node)
        expected = self._search.pattern.calls[wanted]
        found = self._search.index.calls.get(node) if isinstance(node, torch.fx.Node) else None
        if found is None or found.key != expected.key:
            label = found.label if found else _show(node)
            return self._fail(wanted, node, expected.label, label, "another call")
        if node in self.taken:
            return self._fail(wanted, node, expected.label, node.name, "already part of the match")
        self.nodes[wanted] = node
        self.taken.add(node)
        for (name, value), (other_name, other) in zip(
            expected.arguments, found.arguments, strict=False
        ):
            if name != other_name:
                return self._fail(wanted, node, name, other_name, "another overload")
            if not self._argument(wanted, node, name, value, other):
                return False
        if len(expected.arguments) != len(found.arguments):
            return self._fail(
                wanted,
                node,
                f"{len(expected.arguments)} arguments",
                f"{len(found.arguments)}",
                "another number of arguments",
            )
        return True

    def _parameter(self, wanted: torch.fx.Node, node: Any) -> bool:
        """Let a parameter of the pattern stand for a value, or for a literal if it says so."""
        kind = self._search.pattern.literals.get(wanted)
        if kind is None:
            if not isinstance(node, torch.fx.Node):
                return self._fail(wanted, node, "a value", _show(node), "a literal stands here")
        elif type(node) is not kind:
            return self._fail(wanted, node, f"a literal {kind.__name__}", _show(node), "not that")
        self.nodes[wanted] = node
        return True

    def _argument(
        self, wanted: torch.fx.Node, node: torch.fx.Node, name: str, value: Any, other: Any
    ) -> bool:
        if isinstance(value, torch.fx.Node):
            return self.unify(value, other)
        if isinstance(value, tuple) and isinstance(other, tuple) and len(value) == len(other):
            return all(
                self._argument(wanted, node, name, a, b) for a, b in zip(value, other, strict=True)
            )
        if isinstance(value, slice) and isinstance(other, slice):
            mine = (value.start, value.stop, value.step)
            theirs = (other.start, other.stop, other.step)
            return self._argument(wanted, node, name, mine, theirs)
        if _same(value, other):
            return True
        return self._fail(
            wanted, node, f"{name}={_show(value)}", f"{name}={_show(other)}", "another argument"
        )

    def _fail(
        self, wanted: torch.fx.Node, node: Any, expected: str, found: str, reason: str
    ) -> bool:
        self._search.note(self, wanted, node, expected, found, reason)
        return False


_IN_ARGUMENTS = ("another argument", "another overload", "another number of arguments")
"""Reasons of a failure at a call that was found but does not agree."""


class _Search:
    """One pattern against one graph, remembering the nearest miss."""

    def __init__(self, pattern: Pattern, index: GraphIndex) -> None:
        self.pattern = pattern
        self.index = index
        self.miss: Miss | None = None

    def note(
        self,
        attempt: _Attempt,
        wanted: torch.fx.Node,
        node: Any,
        expected: str,
        found: str,
        reason: str,
    ) -> None:
        """Keep a failure if more of the pattern agreed than at any failure before."""
        agreed = sum(item.op != "placeholder" for item in attempt.nodes)
        if wanted in attempt.nodes and reason in _IN_ARGUMENTS:
            agreed -= 1
        if self.miss is None or agreed > self.miss.num_matched:
            call = self.pattern.calls.get(wanted)
            self.miss = Miss(
                self.pattern.name,
                agreed,
                len(self.pattern.body),
                f"{wanted.name} = {call.label}" if call else f"argument {wanted.name}",
                node.name if isinstance(node, torch.fx.Node) else None,
                expected,
                found,
                reason,
            )

    def matches(self) -> Iterator[Match]:
        """The legal matches, each call of the graph in at most one of them."""
        used: set[torch.fx.Node] = set()
        for node in self.index.with_key(self.pattern.calls[self.pattern.anchor].key):
            if node in used or node not in self.index.calls:
                continue
            start = _Attempt(self, {}, set(used))
            if not start.unify(self.pattern.anchor, node):
                continue
            for attempt in self._complete(start):
                match = Match(attempt.nodes)
                why = refusal(self.pattern, attempt.nodes, self.index)
                if why is None:
                    used.update(match.inside(self.pattern))
                    yield match
                    break
                self.note(attempt, why.wanted, why.node, why.expected, why.found, why.reason)

    def _complete(self, attempt: _Attempt) -> Iterator[_Attempt]:
        """Every way to assign the pattern's remaining calls."""
        wanted = self._next(attempt)
        if wanted is None:
            yield attempt
            return
        for node in self._candidates(attempt, wanted):
            trial = attempt.copy()
            if trial.unify(wanted, node):
                yield from self._complete(trial)

    def _next(self, attempt: _Attempt) -> torch.fx.Node | None:
        """A call not yet assigned, one that reads an assigned value if there is any."""
        rest = [node for node in self.pattern.body if node not in attempt.nodes]
        for node in rest:
            for source in node.all_input_nodes:
                if isinstance(attempt.nodes.get(source), torch.fx.Node):
                    return node
        return rest[-1] if rest else None

    def _candidates(self, attempt: _Attempt, wanted: torch.fx.Node) -> list[torch.fx.Node]:
        sources = [
            node
            for node in wanted.all_input_nodes
            if isinstance(attempt.nodes.get(node), torch.fx.Node)
        ]
        if not sources:
            return self.index.with_key(self.pattern.calls[wanted].key)
        users = sorted(attempt.nodes[sources[0]].users)
        fitting = [node for node in users if node not in attempt.taken]
        if not fitting:
            call = self.pattern.calls[wanted]
            self.note(
                attempt,
                wanted,
                attempt.nodes[sources[0]],
                call.label,
                "no further use",
                "the value is not used that way",
            )
        return fitting

    def explain(self) -> Miss:
        """The nearest miss, also where not even the anchor was found."""
        for wanted in reversed(self.pattern.body):
            key = self.pattern.calls[wanted].key
            for node in self.index.with_key(key):
                attempt = _Attempt(self, {}, set())
                if attempt.unify(wanted, node):
                    self._note_end(attempt, wanted, node)
        if self.miss is None:
            calls = self.pattern.calls
            absent = [node for node in calls if not self.index.with_key(calls[node].key)]
            first = [*absent, *self.pattern.body][0]
            label = calls[first].label
            self.miss = Miss(
                self.pattern.name,
                0,
                len(self.pattern.body),
                f"{first.name} = {label}",
                None,
                label,
                "no such call in the graph",
                "nothing to start from",
            )
        return self.miss

    def _note_end(self, attempt: _Attempt, wanted: torch.fx.Node, node: torch.fx.Node) -> None:
        uses = [self.index.calls[user] for user in node.users if user in self.index.calls]
        keys = [call.key for call in uses]
        calls = self.pattern.calls
        users = [user for user in wanted.users if user in calls and calls[user].key not in keys]
        if not users:
            return
        found = ", ".join(sorted({call.label for call in uses})) or "the graph's output"
        expected = self.pattern.calls[users[0]].label
        self.note(attempt, users[0], node, expected, found, "the value is used by another call")


def each_match(
    pattern: Pattern, index: GraphIndex, use: Callable[[Match], None]
) -> tuple[int, Miss | None]:
    """Hand every legal match to `use`, in graph order; `use` may replace it at once.

    Returns:
        How many there were, and the nearest miss when there was none.
    """
    search = _Search(pattern, index)
    num_matches = 0
    for match in search.matches():
        use(match)
        num_matches += 1
    return num_matches, None if num_matches else search.explain()


def _same(one: Any, other: Any) -> bool:
    """Whether two literals are equal and of one type, at every depth."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return type(one) is type(other) and one == other


def _show(value: Any) -> str:
    if isinstance(value, torch.fx.Node):
        return f"value {value.name}"
    return repr(value)
