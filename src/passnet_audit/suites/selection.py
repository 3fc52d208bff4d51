"""Tasks from subgraphs: groups that share an op sequence, and a selection for a benchmark.

Source: PassNet paper (arXiv 2605.29357), selection of PassBench, with ids from the rows' content.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any, TypeAlias, TypeVar

from passnet.core.records.serialise import decode
from passnet.data.dataset.store import SubgraphRow
from passnet.data.mine.subgraphs import SubgraphKind
from passnet.errors import InputError
from passnet.graph.spec import TensorSpec
from passnet.graph.text.meta import input_mib
from passnet.judge.task import task_name

K = TypeVar("K", bound=Any)

ALPHA = 1e-3
"""Laplace's count for pairs of ops that do not occur (PassNet paper, selection of PassBench)."""
LEVELS_A_BUCKET = 4
"""The powers of two in one bucket of sizes (published: floor(log2 d) // 4)."""
OpPair: TypeAlias = tuple[str | None, str]
"""An op and the next one; the only op of a sequence follows None."""
Bucket: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
"""Dtype and size classes of each input."""


@dataclass(frozen=True, slots=True)
class SelectionPlan:
    """The tasks of a suite: one kind of subgraphs, with bounds on ops, sizes, and graphs a task.

    Sizes within `levels_a_bucket` powers of two count as one.
    """

    kind: SubgraphKind = "fusible"
    """Make tasks of this kind of subgraph."""
    num_tasks: int = 200
    """Select this many tasks."""
    min_graphs: int = 1
    """Skip tasks with fewer graphs than this."""
    max_graphs: int = 396
    """Take at most this many graphs of a task: those found in most places."""
    min_ops: int = 1
    max_ops: int = 64
    max_mib: float = field(default=64.0, metadata={"option": "max-mib"})
    """Skip graphs whose inputs take more MiB than this."""
    levels_a_bucket: int = LEVELS_A_BUCKET


@dataclass(frozen=True, slots=True)
class EligibleRow:
    """A row that may be part of a task, and its bucket."""

    row: SubgraphRow
    bucket: Bucket


@dataclass(frozen=True, slots=True)
class TaskRows:
    """The subgraphs of a task, one of each bucket, the most frequent first."""

    ops: tuple[str, ...]
    rows: tuple[SubgraphRow, ...]

    @property
    def name(self) -> str:
        """The first ops by name, and a hash of all."""
        return task_name(self.ops)


def bucket_of(tensors: Iterable[TensorSpec], levels: int = LEVELS_A_BUCKET) -> Bucket:
    """Return the bucket of a subgraph with these inputs, of `levels` powers of two.

    Examples:
        >>> bucket_of([TensorSpec("x", (1, 200), "float32")])
        (('float32', (0, 1)),)
    """
    return tuple(
        (spec.dtype, tuple((max(size, 1).bit_length() - 1) // levels for size in spec.shape))
        for spec in tensors
    )


def eligible_rows(rows: Iterable[SubgraphRow], plan: SelectionPlan) -> Iterator[EligibleRow]:
    """Yield the rows that a plan allows, with their buckets."""
    for row in rows:
        if plan.kind not in row.kinds or not plan.min_ops <= row.num_ops <= plan.max_ops:
            continue
        tensors = decode(row.tensors, tuple[TensorSpec, ...], row.full)
        if input_mib(tensors) <= plan.max_mib:
            yield EligibleRow(row, bucket_of(tensors, plan.levels_a_bucket))


def tasks_of(
    rows: Iterable[EligibleRow], plan: SelectionPlan, left_out: Collection[str] = ()
) -> list[TaskRows]:
    """Return the tasks that a plan allows, by op sequence; fingerprints can be left out."""
    groups = bucketed(rows, left_out, lambda row: row.op_sequence)
    return [
        TaskRows(ops, tuple(sorted(bucket_rows, key=rank_of_row)[: plan.max_graphs]))
        for ops, bucket_rows in groups
        if len(bucket_rows) >= plan.min_graphs
    ]


def bucketed(
    rows: Iterable[EligibleRow], left_out: Collection[str], key: Callable[[SubgraphRow], K]
) -> list[tuple[K, list[SubgraphRow]]]:
    """Return rows grouped by a key, sorted by it, with the first-ranked row of each bucket."""
    groups: dict[K, dict[Bucket, SubgraphRow]] = defaultdict(dict)
    for candidate in rows:
        row = candidate.row
        if row.full not in left_out:
            buckets = groups[key(row)]
            first = buckets.setdefault(candidate.bucket, row)
            buckets[candidate.bucket] = min(row, first, key=rank_of_row)
    return [(group, list(groups[group].values())) for group in sorted(groups)]


def rank_of_row(row: SubgraphRow) -> tuple[int, str]:
    """Return the sort key of a row: the most frequent come first."""
    return -row.num_places, row.full


def op_pairs(ops: Sequence[str]) -> list[OpPair]:
    """Return the pairs of consecutive ops; for a single op, the pair of None and it.

    Examples:
        >>> op_pairs(["a", "b", "a"]), op_pairs(["a"])
        ([('a', 'b'), ('b', 'a')], [(None, 'a')])
    """
    return list(zip(ops, ops[1:], strict=False)) if len(ops) > 1 else [(None, op) for op in ops]


def rarities(sequences: Sequence[Sequence[str]]) -> list[float]:
    """Return the rarity of each op sequence among all of them, from 0 to 1.

    It is the mean of -log P(next op | op) over its pairs, with P from all sequences and `ALPHA`
    added to every count, scaled so that the least is 0 and the most 1.
    """
    pairs_of = [op_pairs(ops) for ops in sequences]
    counts = Counter(pair for pairs in pairs_of for pair in pairs)
    totals: Counter[str | None] = Counter()
    for (op, _), count in counts.items():
        totals[op] += count
    num_ops = len({op for ops in sequences for op in ops})
    surprise = {
        pair: -math.log((count + ALPHA) / (totals[pair[0]] + ALPHA * num_ops))
        for pair, count in counts.items()
    }
    means = [sum(surprise[pair] for pair in pairs) / len(pairs) for pairs in pairs_of]
    low, high = min(means, default=0.0), max(means, default=0.0)
    return [(mean - low) / (high - low) if high > low else 0.0 for mean in means]


def select_tasks(tasks: Sequence[TaskRows], num_tasks: int) -> Iterator[TaskRows]:
    """Yield the tasks of a suite, in the order of their selection.

    Each next task is the one with the most gain: its new pairs of ops times (1 + rarity); among
    equals the larger task. Once no task has a new pair, all pairs count as new again, which the
    published selection leaves open. Raises InputError for fewer tasks.
    """
    if len(tasks) < num_tasks:
        raise InputError(
            f"{len(tasks)} tasks fit the plan, and {num_tasks} are wanted; allow smaller tasks or "
            "give a larger dataset"
        )
    weights = [1 + rarity for rarity in rarities([task.ops for task in tasks])]
    pairs_of = [frozenset(op_pairs(task.ops)) for task in tasks]
    remaining = set(range(len(tasks)))
    covered: set[OpPair] = set()
    queue: list[tuple[float, int, int]] = []
    for _ in range(num_tasks):
        best = pop_best(queue, pairs_of, weights, covered)
        if best is None:
            covered.clear()
            queue = [(-len(pairs_of[i]) * weights[i], -len(tasks[i].rows), i) for i in remaining]
            heapify(queue)
            best = pop_best(queue, pairs_of, weights, covered)
        assert best is not None, "a task has at least one pair"
        remaining.remove(best)
        covered |= pairs_of[best]
        yield tasks[best]


def pop_best(
    queue: list[tuple[float, int, int]],
    pairs_of: Sequence[frozenset[OpPair]],
    weights: Sequence[float],
    covered: set[OpPair],
    fits: Callable[[int], bool] = lambda _: True,
) -> int | None:
    """Pop the fitting task that gains most from the queue; None where none gains.

    Gains only fall and an unfit task stays unfit: the first with an unchanged gain is the best.
    """
    while queue:
        stored, size, task = queue[0]
        gain = len(pairs_of[task] - covered) * weights[task] if fits(task) else 0.0
        if gain and -stored > gain:
            heapreplace(queue, (-gain, size, task))
            continue
        heappop(queue)
        if gain:
            return task
    return None


def nets_of(tasks: Iterable[TaskRows]) -> set[str]:
    """Return the nets of some tasks' subgraphs, as far as rows name them."""
    return {net for task in tasks for row in task.rows for net in row.nets}


def domains_of(tasks: Iterable[TaskRows]) -> Mapping[str, int]:
    """Count the subgraphs of some tasks by domain."""
    return Counter(sorted(row.domain for task in tasks for row in task.rows))
