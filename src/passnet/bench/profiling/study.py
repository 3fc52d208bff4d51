"""Conclusions from many profiles: how often, why and on which ops compiled calls lose time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, geometric_mean, median
from typing import TypeAlias

import numpy as np

from passnet.bench.groups import range_of, range_ranks
from passnet.bench.profiling.record import PART_NAMES, ProfileRecord, ProfileSubject
from passnet.errors import InputError
from passnet.graph.text.files import graph_from_row
from passnet.judge.score.interval import NUM_RESAMPLES, Interval, interval_of
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import NetSource, TaskGraph, task_name

LITTLE_GAIN = 1.2
"""The published study counts subgraphs whose kernels gain less than this."""

PUBLISHED = {"slower": 0.43, "by_dispatch": 0.80, "little_gain": 0.34, "strictly_slower": 0.083}
"""Shares of the published study: 9,526 subgraphs on one GPU (PassNet paper, arXiv 2605.29357).
`by_dispatch` is a share of the slower subgraphs; the others are shares of all."""

TIMES_MS = (0.02, 0.05, 0.2, 1.0, 5.0)
LENGTHS = (3, 5, 9, 17, 33)
MEBIBYTES = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval, by bootstrap over items; None without items."""

    value: float | None
    interval: Interval | None
    num_of: int


@dataclass(frozen=True, slots=True)
class GroupShare:
    """The results of one group of items."""

    name: str
    num_items: int
    slower: float
    """Share of calls that are slower from end to end than eager PyTorch."""

    surely_slower: float
    """Share of calls that are slower by more than `MARGIN`, by their whole interval."""

    by_dispatch: float | None
    """Share of the slower calls whose kernels are not slower; None where no call is slower."""

    geomean_speedup: float
    """Geometric mean of the speedups from end to end."""

    parts: Mapping[str, float]
    """Mean share of each part of a compiled call."""


@dataclass(frozen=True, slots=True)
class SlowSequence:
    """An op sequence on which compiled calls lose time."""

    ops: tuple[str, ...]
    num_items: int
    lost_ms: float
    """Milliseconds lost on one call of every item."""

    geomean_speedup: float
    names: tuple[str, ...]
    """The items that surely lose."""


@dataclass(frozen=True, slots=True)
class ProfileStudy:
    """All results. Shares are of measured items."""

    num_items: int
    """Items, with those left out."""

    num_measured: int
    left_out: Mapping[str, int]
    """Items that were not measured, by cause."""

    slower: Share
    surely_slower: Share
    slower_weighted: Share
    """The slower calls, each counted as often as its dataset has such rows."""

    by_dispatch: Share
    """Of the slower calls, those whose kernels are not slower than eager PyTorch's."""

    by_dispatch_at_least: Share
    """Of the slower calls, those whose kernels take no longer than the whole eager call."""

    little_gain: Share
    """Calls whose kernels are less than `LITTLE_GAIN` times as fast."""

    strictly_slower: Share
    """Calls that are slower, and whose kernels are slower too."""

    slower_direct: Share
    """Of calls of one graph, those that are slower even without Dynamo, called directly."""

    by_dynamo: Share
    """Of the slower calls of one graph, those that are not slower when called directly."""

    geomean_speedup: float
    geomean_direct: float | None
    parts: Mapping[str, float]
    """Mean share of each part of a compiled call."""

    difference_us: Mapping[str, float]
    """Medians over the slower calls, in microseconds: compiled minus eager, and all parts."""

    residue_low: float
    residue_high: float
    """Share of a call that its parts leave: 5 and 95 % quantiles."""

    size_correlation: float | None
    """Spearman's correlation of the speedup with the number of ops."""

    groups: Mapping[str, Sequence[GroupShare]]
    sequences: Sequence[SlowSequence]


def study(records: Sequence[ProfileRecord], num_sequences: int = 30, seed: int = 0) -> ProfileStudy:
    """Return the conclusions from profiles.

    Raises:
        InputError: no item was measured.
    """
    measured = [record for record in records if record.status == "ok"]
    if not measured:
        raise InputError("no item was measured, so there is nothing to study")

    def share(flags: Iterable[bool]) -> Share:
        return _share([*flags], seed)

    slower = [record for record in measured if record.is_slower]
    kernels = [record for record in measured if record.eager is not None]
    direct = [record for record in measured if record.direct_ms]
    residues = np.array([record.residue_share or 0.0 for record in measured])
    return ProfileStudy(
        num_items=len(records),
        num_measured=len(measured),
        left_out=dict(Counter(x.cause for x in records if x.status != "ok").most_common()),
        slower=share(record.is_slower for record in measured),
        surely_slower=share(record.is_surely_slower for record in measured),
        slower_weighted=_share(
            [record.is_slower for record in measured], seed, [record.weight for record in measured]
        ),
        by_dispatch=share(record.is_by_dispatch for record in kernels if record.is_slower),
        by_dispatch_at_least=share(
            record.parts.kernels <= (record.eager_ms or 0.0) for record in slower if record.parts
        ),
        little_gain=share(record.kernel_speedup < LITTLE_GAIN for record in kernels),
        strictly_slower=share(r.is_slower and not r.is_by_dispatch for r in kernels),
        slower_direct=share(record.direct_speedup < 1 for record in direct),
        by_dynamo=share(record.direct_speedup >= 1 for record in direct if record.is_slower),
        geomean_speedup=_geomean(measured),
        geomean_direct=geometric_mean(r.direct_speedup for r in direct) if direct else None,
        parts=_mean_parts(measured),
        difference_us=_median_differences(slower),
        residue_low=float(np.quantile(residues, 0.05)),
        residue_high=float(np.quantile(residues, 0.95)),
        size_correlation=_rank_correlation(measured),
        groups={by: _groups(measured, key) for by, key in GROUPINGS.items()},
        sequences=_slow_sequences(measured)[:num_sequences],
    )


def _share(flags: Sequence[bool], seed: int, weights: Sequence[float] | None = None) -> Share:
    """Return the share of true flags, with its interval."""
    if not flags:
        return Share(None, None, 0)
    hits, counts = np.array(flags, float), np.array(weights or [1.0] * len(flags))
    picks = np.random.default_rng(seed).integers(0, len(flags), (NUM_RESAMPLES, len(flags)))
    resampled = (hits * counts)[picks].sum(axis=1) / counts[picks].sum(axis=1)
    value = float((hits * counts).sum() / counts.sum())
    return Share(value, interval_of(resampled), len(flags))


def _geomean(records: Sequence[ProfileRecord]) -> float:
    return geometric_mean(record.speedup for record in records if record.speedup)


def _mean_parts(records: Sequence[ProfileRecord]) -> dict[str, float]:
    parts = [record.parts for record in records if record.parts is not None]
    return {
        name: fmean(getattr(call, name) / call.total if call.total else 0.0 for call in parts)
        for name in PART_NAMES
    }


def _median_differences(records: Sequence[ProfileRecord]) -> dict[str, float]:
    """Return medians in microseconds: compiled minus eager, each part, and eager's two parts."""
    if not records:
        return {}
    columns: dict[str, list[float]] = {
        "difference": [(r.compiled_ms or 0) - (r.eager_ms or 0) for r in records]
    }
    for name in PART_NAMES:
        columns[name] = [getattr(record.parts, name) for record in records]
    columns["eager dispatch"] = [record.eager.dispatch for record in records if record.eager]
    columns["eager kernels"] = [record.eager.kernels for record in records if record.eager]
    return {name: median(1e3 * ms for ms in column) for name, column in columns.items() if column}


def _rank_correlation(records: Sequence[ProfileRecord]) -> float | None:
    sized = [record for record in records if record.num_ops]
    if len({record.num_ops for record in sized}) < 2:
        return None
    speedups = _ranks([record.speedup or 0.0 for record in sized])
    return float(np.corrcoef(speedups, _ranks([record.num_ops for record in sized]))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Return the rank of each value; equal values share their mean rank."""
    _, inverse, counts = np.unique(np.array(values), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


_Key: TypeAlias = Callable[[ProfileRecord], str]


def _groups(records: Sequence[ProfileRecord], key: _Key) -> list[GroupShare]:
    by_name: dict[str, list[ProfileRecord]] = defaultdict(list)
    for record in records:
        by_name[key(record)].append(record)

    def rank(name: str) -> tuple[int, int, str]:
        return _RANK.get(name, len(_RANK)), -len(by_name[name]), name

    return [_group(name, by_name[name]) for name in sorted(by_name, key=rank)]


def _group(name: str, records: Sequence[ProfileRecord]) -> GroupShare:
    slower = [record for record in records if record.is_slower and record.eager is not None]
    return GroupShare(
        name,
        len(records),
        sum(record.is_slower for record in records) / len(records),
        sum(record.is_surely_slower for record in records) / len(records),
        sum(record.is_by_dispatch for record in slower) / len(slower) if slower else None,
        _geomean(records),
        _mean_parts(records),
    )


def _slow_sequences(records: Sequence[ProfileRecord]) -> list[SlowSequence]:
    """Return the op sequences whose items lose time, the largest losses first."""
    by_ops: dict[tuple[str, ...], list[ProfileRecord]] = defaultdict(list)
    for record in records:
        if record.ops:
            by_ops[record.ops].append(record)
    sequences = []
    for ops, subjects in by_ops.items():
        lost_ms = sum((subject.compiled_ms or 0) - (subject.eager_ms or 0) for subject in subjects)
        names = tuple(subject.name for subject in subjects if subject.is_surely_slower)
        if names and lost_ms > 0:
            sequences.append(SlowSequence(ops, len(subjects), lost_ms, _geomean(subjects), names))
    return sorted(sequences, key=lambda sequence: (-sequence.lost_ms, sequence.ops))


_in_range = partial(range_of, joint="to below")

GROUPINGS: Mapping[str, _Key] = {
    "time": lambda record: _in_range(record.eager_ms or 0.0, TIMES_MS, " ms"),
    "ops": lambda record: (
        _in_range(record.num_ops, LENGTHS, " ops") if record.num_ops else "a whole net"
    ),
    "size": lambda record: _in_range(record.input_mib, MEBIBYTES, " MiB"),
    "domain": lambda record: record.domain or "unknown",
    "dtype": lambda record: record.dtype or "none",
    "library": lambda record: record.library or "unknown",
}
"""The groupings of items: by the time of an eager call, the number of ops, the size of arguments,
and origin."""

_RANK = range_ranks(((TIMES_MS, " ms"), (LENGTHS, " ops"), (MEBIBYTES, " MiB")), "to below")


def slow_suite(
    name: str, sequences: Sequence[SlowSequence], subjects: Mapping[str, ProfileSubject]
) -> Suite:
    """Return a suite with a task for each op sequence, made of the items that surely lose.

    Raises:
        InputError: there is no item of these sequences.
    """
    graphs = []
    for sequence in sequences:
        task = task_name(sequence.ops)
        for subject in (subjects[name] for name in sequence.names if name in subjects):
            source = NetSource("", subject.library, "", 0, 0, subject.domain)
            graph = graph_from_row(subject.program, subject.tensors, subject.name)
            graphs.append(TaskGraph(task, f"{task}-{subject.name}", graph, source))
    if not graphs:
        raise InputError("no subgraph surely loses, so there is no suite to make")
    return make_suite(name, graphs)
