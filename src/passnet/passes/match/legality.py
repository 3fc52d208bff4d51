"""Legality of a match's replacement: nothing leaks or circles, no write is lost or reordered."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import torch
import torch.fx

from passnet.graph.fx.operators import name_set
from passnet.passes.apply.write_back import write_back
from passnet.passes.match.graph_index import GraphIndex, first_values, stale_reads, touched
from passnet.passes.match.guards import EXAMPLE
from passnet.passes.match.pattern import Match

MatchRefusal: TypeAlias = tuple[torch.fx.Node, torch.fx.Node, str, str, str]
"""Reason against a replacement: pattern's node, graph's node, expected, actual, and the rule."""


def refusal(match: Match, index: GraphIndex) -> MatchRefusal | None:
    """Return why one call in place of the last node may not replace the match, or None.

    The rules, for the matched calls M with first node `lo` and last node `hi`:

    - a value made in M that the pattern does not return is used in M only, or by calls whose
      results nobody needs, which go with M;
    - no value that a parameter stands for is made in M or depends on a value made in M;
    - between `lo` and `hi` nothing outside M writes into what a call of M before it touches, or
      depends on M and writes into what M touches at all, or switches a state, or draws random
      numbers where M does;
    - the nodes in between that depend on M, and so come after it once it is replaced, keep their
      order with every write;
    - a write made by M is seen by nobody outside M, except through what the pattern returns, or
      the pattern makes it too and it can be written back (see `write_back`);
    - what M reads or returns under an older name than that of a write into it, the pattern does;
    - a returned value that may share memory with an outside value, or with another that is
      returned, is not written to later;
    - where one of graph and pattern writes into a value and the other makes a new one, that has the
      same dtype.
    """
    for rule, expected, reason in _RULES:
        for pattern_node, node, actual in rule(match, index):
            return pattern_node, node, expected, actual, reason
    return None


_Violations: TypeAlias = Iterator[tuple[torch.fx.Node, torch.fx.Node, str]]
"""Broken rules: a node of the pattern, the graph's node, and the actual value."""


def _leaks(match: Match, index: GraphIndex) -> _Violations:
    for node, pattern_node in match.calls.items():
        if pattern_node not in match.pattern.outputs:
            for user in node.users:
                if user not in match.calls and not index.is_unused(user):
                    yield pattern_node, node, f"a use by {user.name}"


def _circles(match: Match, index: GraphIndex) -> _Violations:
    for param in match.pattern.params:
        values: list[torch.fx.Node] = []
        torch.fx.map_arg(match.nodes.get(param), values.append)
        for node in values:
            if node in match.calls or node in match.dependents:
                yield param, node, f"{node.name}, computed from it"


def _between(match: Match, nodes: Iterable[torch.fx.Node]) -> list[torch.fx.Node]:
    return [node for node in nodes if match.first < node < match.last and node not in match.calls]


def _interferences(match: Match, index: GraphIndex) -> _Violations:
    for writer in _between(match, index.writers):
        moved = (node for node in match.calls if writer in match.dependents or node < writer)
        if index.group(writer) in touched(moved, index):
            yield match.calls[match.last], match.last, f"{writer.name} writes"


def _switches(match: Match, index: GraphIndex) -> _Violations:
    for node in _between(match, index.switches):
        yield match.calls[match.last], match.last, node.name


def _draws(match: Match, index: GraphIndex) -> _Violations:
    if not match.calls.keys().isdisjoint(index.drawing):
        for node in _between(match, index.drawing):
            yield match.calls[match.last], match.last, node.name


def _reorderings(match: Match, index: GraphIndex) -> _Violations:
    dependents = match.dependents
    writers = [node for node in index.writers if dependents and match.first <= node <= match.last]
    staying: list[torch.fx.Node] = []
    node = match.first
    while writers and node is not match.last:
        if node not in match.calls and node not in dependents:
            staying.append(node)
        node = node.next
    for writer in writers:
        is_dependent = writer in dependents
        for node in staying if is_dependent else dependents:
            is_passed = writer < node if is_dependent else node < writer
            if is_passed and index.group(writer) in touched([node], index):
                actual = f"{writer.name} writes and {node.name} would come on its other side"
                yield match.calls[match.last], match.last, actual


def _lost_writes(match: Match, index: GraphIndex) -> _Violations:
    for writer, reader in write_back(match, index).lost:
        yield match.calls[writer], writer, reader


def _stale_reads(match: Match, index: GraphIndex) -> _Violations:
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
    for writer, value, _ in sorted(differing, key=lambda read: read[:2]):
        yield match.calls[writer], writer, f"{value.name}, used again after the write"


def _written_views(match: Match, index: GraphIndex) -> _Violations:
    later = [node for node in index.writers if node not in match.calls and match.last < node]
    copied = write_back(match, index).copied if later else {}
    for output in match.pattern.outputs if later else ():
        result = match.nodes[output]
        if result in copied:  # it stays the value that it is
            continue
        group = index.group(result)
        is_shared = any(
            (value not in match.calls and value < result)
            or (match.calls.get(value) in match.pattern.outputs and value is not result)
            for value in index.members(group)
        )
        for writer in later:
            if is_shared and index.group(writer) == group:
                yield output, result, f"{writer.name} writes"


_OF_BOOLS = name_set("eq ne lt le gt ge logical_and logical_or logical_xor logical_not")
_PROMOTED = name_set("""
    add iadd sub isub subtract mul imul multiply div divide true_divide truediv itruediv
    floor_divide floordiv ifloordiv remainder mod imod fmod pow ipow addcmul addcdiv bitwise_and
    bitwise_or bitwise_xor and or xor iand ior ixor atan2 clamp clip
""")


def _promotions(match: Match, index: GraphIndex) -> _Violations:
    """Find calls that write into a value where the pattern makes a new one of another dtype."""
    for node, pattern_node in match.calls.items():
        own, pattern = index.calls[node], match.pattern.calls[pattern_node]
        name = own.label.rpartition(".")[2].strip("_")
        if own.writes == pattern.writes or name not in _PROMOTED | _OF_BOOLS:
            continue
        examples = [
            value.meta.get(EXAMPLE) for value in (*first_values(node), *node.all_input_nodes)
        ]
        dtypes = [x.dtype for x in examples if isinstance(x, torch.Tensor) and x.dim()]
        if len({*dtypes}) > 1 or (name in _OF_BOOLS and dtypes and dtypes[0] is not torch.bool):
            yield pattern_node, node, f"operands of {dtypes[0]} and others"


_RULES: tuple[tuple[Callable[[Match, GraphIndex], _Violations], str, str], ...] = (
    (_leaks, "a value used only inside the match", "the value leaks; let the pattern return it"),
    (_circles, "a value from before the match", "the match would need its own result"),
    (_interferences, "no other write in between", "a value of the match is written to in between"),
    (_switches, "no switch in between", "a state is switched"),
    (_draws, "no other random numbers in between", "random numbers are drawn in another order"),
    (_reorderings, "every call on its side of a write",
     "a call that uses the match would trade places with a write"),
    (_lost_writes, "a write nobody else sees",
     "the call writes into a value from outside the match"),
    (_stale_reads, "the same writes, seen under the same names",
     "the graph and the pattern differ in what a write changes"),
    (_written_views, "no write to it later",
     "the value may share memory with one that the match does not make"),
    (_promotions, "the same dtype written into as made anew",
     "a write keeps the dtype, and a new value has another"),
)  # fmt: skip
