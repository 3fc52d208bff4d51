"""Search for a pattern in a graph: every match, or the nearest miss."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch
import torch.fx

from passnet.passes.match.graph_index import GraphIndex
from passnet.passes.match.guards import Guards, example_of
from passnet.passes.match.legality import MatchRefusal, refusal
from passnet.passes.match.normalise import CanonicalCall, normal_forms
from passnet.passes.match.pattern import Match, Pattern, make_match


@dataclass(frozen=True, slots=True)
class Miss:
    """The nearest miss: `call` and `node`, None without one, differed after `num_matched` calls."""

    pattern: str
    num_matched: int
    num_calls: int
    call: str
    node: str | None
    expected: str
    found: str
    reason: str

    def sentence(self) -> str:
        """Return the miss in one line."""
        location = f" at node {self.node}" if self.node else ""
        return (
            f"{self.pattern}: {self.num_matched} of {self.num_calls} calls agree, then {self.call}"
            f"{location}: {self.reason}: expected {self.expected}, found {self.found}"
        )


_Nodes: TypeAlias = dict[torch.fx.Node, Any]
_FREE_STEPS = 10_000
_STEPS_A_CALL = 100
"""Assignments tried from one place; interchangeable calls have as many as they have orders."""

_IN_ARGUMENTS = ("another argument", "another overload", "another number of arguments")


class _Search:
    """One pattern against one graph, remembering the nearest miss."""

    def __init__(self, pattern: Pattern, index: GraphIndex, guards: Guards | None) -> None:
        self.pattern = pattern
        self.index = index
        self.guards = guards
        self.miss: Miss | None = None
        self.matched: set[torch.fx.Node] = set()
        self.steps_left = 0

    def matches(self) -> Iterator[Match]:
        """Yield the legal matches, with each call of the graph in at most one."""
        anchor = self.pattern.anchor
        for node in self.index.with_key(self.pattern.calls[anchor].key):
            start: _Nodes = {}
            if node not in self.index.calls or node in self.matched:
                continue
            if not self._unify(start, anchor, node):
                continue
            self.steps_left = _FREE_STEPS + _STEPS_A_CALL * len(self.pattern.body)
            for nodes in self._complete(start):
                match = make_match(self.pattern, nodes)
                why = refusal(match, self.index) or self._uncovered(nodes)
                if why is None:
                    self.matched.update(match.calls)
                    yield match
                    break
                self._fail(nodes, *why)

    def _uncovered(self, nodes: _Nodes) -> MatchRefusal | None:
        """Return the violated guard of the pass, or None."""
        if self.guards is None:
            return None
        params = {str(param.target): param for param in self.pattern.params}
        bound = {name: nodes[param] for name, param in params.items() if param in nodes}
        why = self.guards.refusal({name: example_of(value) for name, value in bound.items()})
        if why is None:
            return None
        param = params.get(why.name, self.pattern.params[0])
        return param, nodes.get(param, param), why.expected, why.actual, "a guard of the pass"

    def explain(self) -> Miss:
        """Return the nearest miss, even if no anchor was found."""
        calls = self.pattern.calls
        for pattern_node in reversed(self.pattern.body):
            for node in self.index.with_key(calls[pattern_node].key):
                nodes: _Nodes = {}
                if self._unify(nodes, pattern_node, node):
                    self._note_users(nodes, pattern_node, node)
        if self.miss is None:
            absent = [node for node in calls if not self.index.with_key(calls[node].key)]
            first = [*absent, *self.pattern.body][0]
            actual, reason = "no such call in the graph", "nothing to start from"
            self._fail({}, first, None, calls[first].label, actual, reason)
        assert self.miss is not None, "a failure is noted where none was before"
        return self.miss

    def _complete(self, nodes: _Nodes) -> Iterator[_Nodes]:
        """Yield every assignment of the pattern's remaining calls."""
        pattern_node = self._next(nodes)
        if pattern_node is None:
            yield nodes
            return
        for node in self._candidates(nodes, pattern_node):
            self.steps_left -= 1
            if self.steps_left < 0:
                if self.miss is not None and self.steps_left == -1:
                    reason = f"{self.miss.reason}; and calls can stand for each other in more ways"
                    self.miss = replace(self.miss, reason=f"{reason} than are tried")
                return
            extended = dict(nodes)
            if self._unify(extended, pattern_node, node):
                yield from self._complete(extended)

    def _next(self, nodes: _Nodes) -> torch.fx.Node | None:
        """Return an unassigned call, preferably one that reads an assigned value."""
        remaining = [node for node in self.pattern.body if node not in nodes]
        for node in remaining:
            if any(isinstance(nodes.get(source), torch.fx.Node) for source in node.all_input_nodes):
                return node
        return remaining[-1] if remaining else None

    def _candidates(self, nodes: _Nodes, pattern_node: torch.fx.Node) -> list[torch.fx.Node]:
        call = self.pattern.calls[pattern_node]
        for source in pattern_node.all_input_nodes:
            value = nodes.get(source)
            if isinstance(value, torch.fx.Node):
                users = [user for user in sorted(value.users) if not self._is_matched(nodes, user)]
                if not users:
                    reason = "the value is not used that way"
                    self._fail(nodes, pattern_node, value, call.label, "no further use", reason)
                return users
        return self.index.with_key(call.key)

    def _is_matched(self, nodes: _Nodes, node: torch.fx.Node) -> bool:
        """Return whether a graph's call is part of this match or an earlier one."""
        return node in self.matched or any(nodes.get(call) is node for call in self.pattern.body)

    def _unify(self, nodes: _Nodes, pattern_node: torch.fx.Node, node: Any) -> bool:
        """Let a pattern node stand for a graph node, and their arguments likewise."""
        if pattern_node in nodes:
            bound = nodes[pattern_node]
            if bound is node or (not isinstance(node, torch.fx.Node) and _same(bound, node)):
                return True
            reason = "it stood for another before"
            return self._fail(nodes, pattern_node, node, _show(bound), _show(node), reason)
        if pattern_node.op == "placeholder":
            return self._bind_parameter(nodes, pattern_node, node)
        expected = self.pattern.calls[pattern_node]
        actual = self.index.calls.get(node) if isinstance(node, torch.fx.Node) else None
        if actual is None or actual.key != expected.key:
            label = actual.label if actual else _show(node)
            return self._fail(nodes, pattern_node, node, expected.label, label, "another call")
        if self._is_matched(nodes, node):
            reason = "already part of the match"
            return self._fail(nodes, pattern_node, node, expected.label, node.name, reason)
        nodes[pattern_node] = node
        expected = self._form_like(actual, expected, pattern_node)
        for (name, expected_value), (actual_name, actual_value) in zip(
            expected.arguments, actual.arguments, strict=False
        ):
            if name != actual_name:
                return self._fail(nodes, pattern_node, node, name, actual_name, "another overload")
            if self._may_be_literal(expected_value) and name in expected.explicit:
                if name not in actual.explicit and actual_value is None:
                    reason = "it is left out"
                    return self._fail(nodes, pattern_node, node, name, "None", reason)
                actual_value = actual.explicit.get(name, actual_value)
            if not self._argument(nodes, pattern_node, name, expected_value, actual_value):
                return False
        counts = len(expected.arguments), len(actual.arguments)
        if counts[0] != counts[1]:
            reason, text = "another number of arguments", f"{counts[0]} arguments"
            return self._fail(nodes, pattern_node, node, text, str(counts[1]), reason)
        return True

    def _may_be_literal(self, value: Any) -> bool:
        """Return whether a value of the pattern is a parameter that stands for anything."""
        is_parameter = isinstance(value, torch.fx.Node) and value.op == "placeholder"
        return is_parameter and value not in self.pattern.literals

    def _form_like(
        self, actual: CanonicalCall, expected: CanonicalCall, pattern_node: torch.fx.Node
    ) -> CanonicalCall:
        """Return a pattern's call in the form of the graph's overload, if literals may make it."""
        names = [name for name, _ in actual.arguments]
        if names == [name for name, _ in expected.arguments] or not any(
            self._may_be_literal(source) for source in pattern_node.all_input_nodes
        ):
            return expected
        forms = normal_forms(pattern_node)
        fitting = (form for form in forms if [name for name, _ in form.arguments] == names)
        return next(fitting, expected)

    def _bind_parameter(self, nodes: _Nodes, param: torch.fx.Node, value: Any) -> bool:
        """Let a parameter of the pattern stand for what the graph has, or for a literal only."""
        kind = self.pattern.literals.get(param)
        if kind is not None and type(value) is not kind:
            expected = f"a literal {kind.__name__}"
            return self._fail(nodes, param, value, expected, _show(value), "not that")
        nodes[param] = value
        return True

    def _argument(
        self, nodes: _Nodes, call: torch.fx.Node, name: str, expected: Any, actual: Any
    ) -> bool:
        """Let an argument of an assigned call of the pattern stand for one of the graph."""
        if isinstance(expected, torch.fx.Node):
            return self._unify(nodes, expected, actual)
        if isinstance(expected, slice) and isinstance(actual, slice):
            expected = (expected.start, expected.stop, expected.step)
            actual = (actual.start, actual.stop, actual.step)
        if type(expected) is type(actual) is tuple and len(expected) == len(actual):
            pairs = zip(expected, actual, strict=True)
            return all(self._argument(nodes, call, name, *pair) for pair in pairs)
        if _same(expected, actual):
            return True
        place = name if name.isidentifier() else f"argument {name}"
        texts = f"{place}={_show(expected)}", f"{place}={_show(actual)}"
        return self._fail(nodes, call, nodes[call], *texts, "another argument")

    def _fail(
        self,
        nodes: _Nodes,
        pattern_node: torch.fx.Node,
        node: Any,
        expected: str,
        actual: str,
        reason: str,
    ) -> bool:
        """Keep a failure if it is nearer to a match than any before; return False."""
        num_matched = sum(matched.op != "placeholder" for matched in nodes)
        if pattern_node in nodes and reason in _IN_ARGUMENTS:
            num_matched -= 1
        if self.miss is None or num_matched > self.miss.num_matched:
            call = self.pattern.calls.get(pattern_node)
            self.miss = Miss(
                self.pattern.name,
                num_matched,
                len(self.pattern.body),
                f"{pattern_node.name} = {call.label}" if call else f"argument {pattern_node.name}",
                node.name if isinstance(node, torch.fx.Node) else None,
                expected,
                actual,
                reason,
            )
        return False

    def _note_users(self, nodes: _Nodes, pattern_node: torch.fx.Node, node: torch.fx.Node) -> None:
        """Keep a failure if no user of a value makes the pattern's next call."""
        uses = [self.index.calls[user] for user in node.users if user in self.index.calls]
        keys = [call.key for call in uses]
        calls = self.pattern.calls
        users = [
            user for user in pattern_node.users if user in calls and calls[user].key not in keys
        ]
        if users:
            actual = ", ".join(sorted({call.label for call in uses})) or "the graph's output"
            reason = "the value is used by another call"
            self._fail(nodes, users[0], node, calls[users[0]].label, actual, reason)


def each_match(
    pattern: Pattern, index: GraphIndex, use: Callable[[Match], None], guards: Guards | None = None
) -> tuple[int, Miss | None]:
    """Hand every legal, guarded match to `use`, in order; return their number and nearest miss."""
    search = _Search(pattern, index, guards)
    num_matches = 0
    for match in search.matches():
        use(match)
        num_matches += 1
    return num_matches, None if num_matches else search.explain()


def _same(first: Any, second: Any) -> bool:
    """Return whether two literals are equal and of one type, at every depth."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_same, first, second))
    return type(first) is type(second) and first == second


def _show(value: Any) -> str:
    return f"value {value.name}" if isinstance(value, torch.fx.Node) else repr(value)
