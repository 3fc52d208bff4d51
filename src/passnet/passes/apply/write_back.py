"""Writes of a match into outside values, and how its replacement makes them.

If the pattern returns the written value, the replacement's result is copied there; otherwise the
writing calls, and those that compute what they write, stay in the graph after the replacement.
"""

import operator
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch.fx

from passnet.graph.fx.operators import name_set
from passnet.graph.values.effects import is_random, last_name
from passnet.passes.match.graph_index import GraphIndex, first_values, touched
from passnet.passes.match.pattern import Match

_RESHAPING = name_set("""
    transpose t squeeze unsqueeze swapaxes swapdims resize resize_as set as_strided detach rename
    sparse_resize sparse_resize_and_clear share_memory
""")
"""Calls whose in-place form changes a value's shape or memory, beyond its content."""

_ENDS = ("", "_")


@dataclass(frozen=True, slots=True)
class WriteBack:
    """The handling of a match's writes into outside values.

    `copied` maps returned calls of the match to the value that they write into, in order; `staying`
    are the calls that stay to write; `lost` are impossible writes, each with who would miss it.
    """

    copied: dict[torch.fx.Node, torch.fx.Node] = field(default_factory=dict)
    staying: list[torch.fx.Node] = field(default_factory=list)
    lost: list[tuple[torch.fx.Node, str]] = field(default_factory=list)


def write_back(match: Match, index: GraphIndex) -> WriteBack:
    """Decide how a match's writes into outside values can be made after its replacement.

    All writes of the match M into one group of values are made together, if M and the pattern both
    write there, and no call that stays between the first of them and the end of M touches it. They
    are

    - copied, if every write is into the whole of one value or an earlier result, and the pattern
      returns some of them, all that value; or
    - kept with the calls of M that they depend on, if the pattern returns none, none is random, and
      they read nothing else that M writes and others see, so that once more they write the same.
    """
    writers = sorted(writer for writer in index.writers if writer in match.calls)
    readers = {writer: text for writer in writers for text in _seen_outside(writer, match, index)}
    writes = WriteBack()
    by_group: dict[Any, list[torch.fx.Node]] = defaultdict(list)
    for writer in writers:
        by_group[index.group(writer)].append(writer)
    for group, together in by_group.items():
        missed = [(writer, readers[writer]) for writer in together if writer in readers]
        if not missed:
            continue
        returned = [node for node in together if match.calls[node] in match.pattern.outputs]
        if not _is_written_by_both(together, group, match, index):
            writes.lost.extend(missed)
        elif returned and (value := _value_of_results(together, returned, match, index)):
            writes.copied.update(dict.fromkeys(returned, value))
        elif not returned and (again := _written_again(together, by_group, readers, match, index)):
            writes.staying.extend(again)
        else:
            writes.lost.extend(missed)
    writes.staying[:] = sorted(set(writes.staying))
    return writes


def _seen_outside(writer: torch.fx.Node, match: Match, index: GraphIndex) -> Iterator[str]:
    """Yield descriptions of the outside values through which a write is visible."""
    members = index.members(index.group(writer))
    views = _views_of_results(writer, members, match)
    for value in members:
        if value not in match.calls and value not in views:
            readers = [user for user in value.users if user not in match.calls and writer < user]
            if value.op in ("placeholder", "get_attr") or readers:
                use = f"read by {readers[0].name}" if readers else "an argument of the graph"
                yield f"{value.name}, {use}"


def _views_of_results(
    writer: torch.fx.Node, members: Iterable[torch.fx.Node], match: Match
) -> set[torch.fx.Node]:
    """Return later views of the match's results alone; they become views of the replacement's."""
    sharing = set(members)
    views: set[torch.fx.Node] = set()
    for value in sorted(sharing):
        if value not in match.calls and writer <= value:
            sources = [source for source in value.all_input_nodes if source in sharing]
            if sources and all(source in match.calls or source in views for source in sources):
                views.add(value)
    return views


def _is_written_by_both(
    writers: list[torch.fx.Node], group: Any, match: Match, index: GraphIndex
) -> bool:
    """Return whether pattern and graph write alike, and no call between would see it late."""
    node = writers[0]
    while node is not match.last:
        node = node.next
        stays = node not in match.calls and node not in match.dependents
        if stays and group in touched([node], index):
            return False
    calls = match.pattern.calls
    return all(
        index.calls[writer].writes and calls[match.calls[writer]].writes for writer in writers
    )


def _value_of_results(
    writers: list[torch.fx.Node], returned: list[torch.fx.Node], match: Match, index: GraphIndex
) -> torch.fx.Node | None:
    """Return the one outside value that all writes go to and returned calls give back, or None."""
    bases = [value for writer in writers for value in first_values(writer)]
    value = bases[0]
    is_one = value not in match.calls and all(base is value or base in writers for base in bases)
    keeps_form = all(_name(writer, index) not in _RESHAPING for writer in writers)
    gives_back = all(index.calls[node].key is not operator.setitem for node in returned)
    return value if is_one and keeps_form and gives_back else None


def _written_again(
    writers: list[torch.fx.Node],
    by_group: Mapping[Any, Sequence[torch.fx.Node]],
    seen: Collection[torch.fx.Node],
    match: Match,
    index: GraphIndex,
) -> set[torch.fx.Node]:
    """Return the calls that write the same after the match as in their place; empty if none do.

    `by_group` are all writes of the match, `seen` those that others see.
    """
    returned = {match.nodes[output] for output in match.pattern.outputs}
    again: set[torch.fx.Node] = set()
    remaining = list(writers)
    while remaining:
        node = remaining.pop()
        again.add(node)
        for source in set(node.all_input_nodes) - again:
            group = index.group(source)
            written = [] if group == index.group(writers[0]) else by_group.get(group, [])
            is_given = any(value in returned for value in index.members(group))
            if any(writer in seen for writer in written) or is_given and group in by_group:
                return set()
            if source in match.calls and source not in returned:
                remaining.append(source)
            remaining += [writer for writer in written if writer < node and writer not in again]
    names = [_name(node, index) for node in again]
    return set() if any(is_random(name + end) for name in names for end in _ENDS) else again


def _name(node: torch.fx.Node, index: GraphIndex) -> str:
    return last_name(index.calls[node].label).rstrip("_")
