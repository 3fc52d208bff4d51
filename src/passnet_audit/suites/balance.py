"""Selections of tasks that represent a corpus: held to shares of domains and of lengths.

Each task is offered once for every domain with enough of its subgraphs.
"""

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify
from typing import TypeVar

from passnet.core.records.serialise import decode
from passnet.data.capture.record import Domain, library_of
from passnet.data.dataset.store import SubgraphRow
from passnet.data.dataset.variant_sizes import names_dtype
from passnet.errors import InputError
from passnet.graph.spec import TensorSpec
from passnet_audit.suites import selection

T = TypeVar("T")

SHORT_OPS = 2
LONG_OPS = 6
"""The most ops of a short task, and the fewest of a long one."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Bounds on the tasks of a suite, as shares of their number.

    `domains`: the share of each domain; they add up to 1. `max_short`: the most tasks of two ops or
    fewer. `min_long`: the fewest of `LONG_OPS` ops and more. With `least_graphs`, smaller tasks are
    selected once no other fits. With `fills`, domains use the room that another cannot fill.
    """

    domains: Mapping[Domain, float]
    max_short: float = 0.15
    min_long: float = 0.4
    fills: bool = False
    least_graphs: int | None = None


def balanced_tasks(
    rows: Iterable[selection.EligibleRow],
    plan: selection.SelectionPlan,
    shares: Shares,
    left_out: Collection[str] = (),
) -> Iterator[selection.TaskRows]:
    """Yield the tasks of a suite in the order of their selection, within the shares.

    Each has the subgraphs of one domain. Raises InputError if too few tasks keep to the shares.
    """
    least = min(plan.min_graphs, shares.least_graphs or plan.min_graphs)
    offers = domain_tasks(rows, replace(plan, min_graphs=least), left_out)
    return select_balanced(offers, plan.num_tasks, shares, plan.min_graphs)


def domain_tasks(
    rows: Iterable[selection.EligibleRow],
    plan: selection.SelectionPlan,
    left_out: Collection[str] = (),
) -> list[tuple[Domain, selection.TaskRows]]:
    """Return the tasks that a plan allows, for each domain with enough subgraphs."""
    groups = selection.bucketed(rows, left_out, lambda row: (row.op_sequence, row.domain))
    return [
        (domain, selection.TaskRows(ops, tuple(_by_turns(bucket_rows)[: plan.max_graphs])))
        for (ops, domain), bucket_rows in groups
        if len(bucket_rows) >= plan.min_graphs
    ]


def unseen_tasks(
    rows: Iterable[selection.EligibleRow],
    shown: Sequence[selection.TaskRows],
    max_graphs: int,
    left_out: Collection[str] = (),
) -> list[selection.TaskRows]:
    """Return up to `max_graphs` held-out subgraphs of each task, in shapes or dtypes not shown."""
    looks = {task.ops: {_look(row) for row in task.rows} for task in shown}
    unseen: dict[tuple[str, ...], dict[Hashable, SubgraphRow]] = {task.ops: {} for task in shown}
    for candidate in rows:
        row = candidate.row
        if row.op_sequence in looks and row.full not in left_out:
            look = _look(row)
            if look not in looks[row.op_sequence]:
                by_look = unseen[row.op_sequence]
                by_look[look] = min(row, by_look.get(look, row), key=selection.rank_of_row)
    return [
        selection.TaskRows(ops, tuple(_by_turns(by_look.values())[:max_graphs]))
        for ops, by_look in unseen.items()
        if by_look
    ]


def _look(row: SubgraphRow) -> Hashable:
    tensors = decode(row.tensors, tuple[TensorSpec, ...], row.full)
    return tuple((spec.dtype, spec.shape) for spec in tensors)


def _by_turns(rows: Iterable[SubgraphRow]) -> list[SubgraphRow]:
    """Return rows with their origins taking turns, and libraries within them."""
    ranked = sorted(rows, key=selection.rank_of_row)
    ways: dict[tuple[bool, str], dict[str, list[SubgraphRow]]] = {}
    for row in ranked:
        is_resized = bool(row.variant) and not names_dtype(row.variant)
        libraries = ways.setdefault((is_resized, "" if is_resized else row.variant), {})
        libraries.setdefault(library_of(row.nets[0]), []).append(row)
    return turns([turns(list(ways[way].values())) for way in sorted(ways)])


def turns(groups: Sequence[Sequence[T]]) -> list[T]:
    """Return the elements of some sequences in turns, as long as they have any.

    Examples:
        >>> turns([[1, 2, 3], [], [4, 5]])
        [1, 4, 2, 5, 3]
    """
    length = max(map(len, groups), default=0)
    return [group[turn] for turn in range(length) for group in groups if turn < len(group)]


class _Room:
    """The number of further tasks of each domain and length; rare longer tasks keep their room."""

    def __init__(
        self, num_tasks: int, shares: Shares, offers: Sequence[tuple[Domain, selection.TaskRows]]
    ) -> None:
        self._domains = _parts(shares.domains, num_tasks)
        self._short = math.floor(shares.max_short * num_tasks)
        self._not_long = num_tasks - math.ceil(shares.min_long * num_tasks)
        lengths = Counter((domain, len(task.ops) > SHORT_OPS) for domain, task in offers)
        self._kept = {
            name: min(max(0, count - lengths[name, True]), lengths[name, False])
            for name, count in sorted(self._domains.items())
        }
        self.is_open = False

    def has(self, domain: Domain, num_ops: int) -> bool:
        reserved = 0 if self.is_open else sum(self._kept.values()) - self._kept.get(domain, 0)
        return (
            (self.is_open or self._domains[domain] > 0)
            and (num_ops > SHORT_OPS or self._short > reserved)
            and (num_ops >= LONG_OPS or self._not_long > 0)
        )

    def take(self, domain: Domain, num_ops: int) -> None:
        self._domains[domain] -= 1
        self._not_long -= num_ops < LONG_OPS
        if num_ops <= SHORT_OPS:
            self._short -= 1
            self._kept[domain] = max(0, self._kept.get(domain, 0) - 1)

    @property
    def lacking(self) -> str:
        """The remaining room as text."""
        domains = self._domains.items()
        return ", ".join(f"{count} of {name}" for name, count in domains if count > 0) or "any"


def _parts(shares: Mapping[Domain, float], total: int) -> Counter[Domain]:
    """Split a number into whole parts of these shares; the largest remainders are rounded up."""
    exact = {name: share * total for name, share in shares.items()}
    parts = Counter({name: math.floor(part) for name, part in exact.items()})
    by_remainder = sorted(exact, key=lambda name: (parts[name] - exact[name], name))
    for name in by_remainder[: total - sum(parts.values())]:
        parts[name] += 1
    return parts


def select_balanced(
    offers: Sequence[tuple[Domain, selection.TaskRows]],
    num_tasks: int,
    shares: Shares,
    min_graphs: int = 1,
) -> Iterator[selection.TaskRows]:
    """Yield the selected offers, each op sequence once; those below `min_graphs` come last.

    Raises InputError if too few tasks keep to the shares.
    """
    weights = [1 + rarity for rarity in selection.rarities([task.ops for _, task in offers])]
    pairs_of = [frozenset(selection.op_pairs(task.ops)) for _, task in offers]
    room = _Room(num_tasks, shares, [offer for offer in offers if len(offer[1].rows) >= min_graphs])
    used_sequences: set[tuple[str, ...]] = set()
    covered: set[selection.OpPair] = set()
    queue: list[tuple[float, int, int]] = []

    fewest = min_graphs

    def fits(offer: int) -> bool:
        domain, task = offers[offer]
        is_large = len(task.rows) >= fewest
        return is_large and task.ops not in used_sequences and room.has(domain, len(task.ops))

    def next_best(refill: bool) -> int | None:
        """Return the best offer; with `refill`, all pairs count as new again."""
        if refill:
            covered.clear()
            queue[:] = [
                (-len(pairs_of[offer]) * weights[offer], -len(offers[offer][1].rows), offer)
                for offer in range(len(offers))
                if fits(offer)
            ]
            heapify(queue)
        return selection.pop_best(queue, pairs_of, weights, covered, fits)

    for number in range(num_tasks):
        best = next_best(refill=False)
        if best is None:
            best = next_best(refill=True)
        if best is None and fewest > 1:
            fewest = 1
            best = next_best(refill=True)
        if best is None and shares.fills and not room.is_open:
            room.is_open = True
            best = next_best(refill=True)
        if best is None:
            raise InputError(
                f"{number} tasks keep to the shares, and {num_tasks} are wanted; there is still "
                f"room for {room.lacking}; allow smaller tasks or give a larger dataset"
            )
        domain, task = offers[best]
        room.take(domain, len(task.ops))
        used_sequences.add(task.ops)
        covered |= pairs_of[best]
        yield task
