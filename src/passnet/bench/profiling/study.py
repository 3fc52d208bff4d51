"""What many profiles say together: how often compiled calls lose, to what, and on what."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, geometric_mean, median
from typing import TypeAlias

import numpy as np

from passnet.bench.profiling.record import PART_NAMES, CallParts, ProfileRecord
from passnet.errors import InputError
from passnet.judge.score.interval import CONFIDENCE, NUM_RESAMPLES, Interval

MARGIN = 0.05
"""How far from 1 the whole interval of a speedup must be for a call to be surely slower."""

LITTLE_GAIN = 1.2
"""The published study counts subgraphs whose kernels gain less than this."""

PUBLISHED = {"slower": 0.43, "by_dispatch": 0.80, "little_gain": 0.34, "strictly_slower": 0.083}
"""Shares of the published study: 9,526 subgraphs on one GPU (PassNet paper, arXiv 2605.29357).
`by_dispatch` is a share of those that are slower; the others are shares of all."""

TIMES_MS = (0.02, 0.05, 0.2, 1.0, 5.0)
LENGTHS = (3, 5, 9, 17, 33)
MEBIBYTES = (0.01, 0.1, 1.0, 10.0)
MAX_OPS_SHOWN = 4


@dataclass(frozen=True, slots=True)
class GroupShare:
    """How the calls of one group did.

    Args:
        slower: share of calls that are slower from end to end than eager torch.
        surely_slower: share of which that is sure: the whole interval is beyond `MARGIN`.
        by_dispatch: share of the slower ones whose kernels take no longer than those of eager
            torch; None where none is slower.
        geomean_speedup: from end to end.
        parts: the mean share of each part of a compiled call.
    """

    name: str
    num_items: int
    slower: float
    surely_slower: float
    by_dispatch: float | None
    geomean_speedup: float
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval, by bootstrap over items; None of nothing."""

    value: float | None
    interval: Interval | None
    num_of: int


@dataclass(frozen=True, slots=True)
class SlowSequence:
    """An op sequence on which compiled calls lose: how many items have it, how much time of all is
    lost on one call of each, and the geometric mean of its speedups.
    """

    ops: tuple[str, ...]
    num_items: int
    lost_ms: float
    geomean_speedup: float
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProfileStudy:
    """All numbers. Shares are of items that were measured; `weighted` counts each as many times as
    it has rows in the dataset that it was drawn from.

    Args:
        num_items: of all, with those that were left out.
        left_out: how many were not measured, by cause.
        slower, surely_slower: see `GroupShare`.
        by_dispatch: of the slower ones, those whose kernels take no longer than eager's.
        by_dispatch_at_least: of the slower ones, those whose kernels take no longer than all of
            eager's time, its dispatch included.
        little_gain: of all, those whose kernels are less than `LITTLE_GAIN` times as fast.
        strictly_slower: of all, those that are slower, and whose kernels are.
        slower_direct: of all that are one graph, those that are slower even where Dynamo is passed
            by and the compiled graph called directly.
        by_dynamo: of the slower ones that are one graph, those that are not slower then.
        parts: the mean share of each part of a compiled call, over all.
        difference_us: the median difference of a compiled call from eager torch's, and of its
            parts, in microseconds, over the slower ones.
        size_correlation: Spearman's correlation of the logarithm of the speedup with the number of
            ops.
    """

    num_items: int
    num_measured: int
    left_out: Mapping[str, int]
    slower: Share
    surely_slower: Share
    slower_weighted: Share
    by_dispatch: Share
    by_dispatch_at_least: Share
    little_gain: Share
    strictly_slower: Share
    slower_direct: Share
    by_dynamo: Share
    geomean_speedup: float
    geomean_direct: float | None
    parts: Mapping[str, float]
    difference_us: Mapping[str, float]
    residue_low: float
    residue_high: float
    size_correlation: float | None
    groups: Mapping[str, Sequence[GroupShare]]
    sequences: Sequence[SlowSequence]


_Key: TypeAlias = Callable[[ProfileRecord], str]


def study(records: Sequence[ProfileRecord], num_sequences: int = 30, seed: int = 0) -> ProfileStudy:
    """What profiles say together.

    Raises:
        InputError: none was measured.
    """
    measured = [record for record in records if record.status == "ok"]
    if not measured:
        raise InputError("no item was measured, so there is nothing to study")
    slower = [record for record in measured if is_slower(record)]
    with_kernels = [record for record in measured if record.eager is not None]
    slower_kernels = [record for record in with_kernels if is_slower(record)]
    direct = [record for record in measured if record.direct_ms]
    residues = sorted(record.residue_share or 0.0 for record in measured)
    return ProfileStudy(
        len(records),
        len(measured),
        dict(Counter(record.cause for record in records if record.status != "ok").most_common()),
        _share(measured, is_slower, seed),
        _share(measured, is_surely_slower, seed),
        _share(measured, is_slower, seed, weighted=True),
        _share(slower_kernels, _is_by_dispatch, seed),
        _share(slower, _is_surely_by_dispatch, seed),
        _share(with_kernels, lambda record: kernel_speedup(record) < LITTLE_GAIN, seed),
        _share(
            with_kernels,
            lambda record: is_slower(record) and not _is_by_dispatch(record),
            seed,
        ),
        _share(direct, _is_slower_direct, seed),
        _share(
            [record for record in direct if is_slower(record)],
            lambda record: not _is_slower_direct(record),
            seed,
        ),
        _geomean(measured),
        geometric_mean(map(_direct_speedup, direct)) if direct else None,
        _mean_parts(measured),
        _median_differences(slower),
        _quantile(residues, 0.05),
        _quantile(residues, 0.95),
        _rank_correlation(measured),
        {by: _groups(measured, key) for by, key in GROUPINGS.items()},
        _slow_sequences(measured)[:num_sequences],
    )


def is_slower(record: ProfileRecord) -> bool:
    """Whether a compiled call is slower than eager torch from end to end."""
    return record.speedup is not None and record.speedup < 1


def is_surely_slower(record: ProfileRecord) -> bool:
    """Whether that is sure, and more than `MARGIN`."""
    return record.speedup_high is not None and record.speedup_high < 1 / (1 + MARGIN)


def _direct_speedup(record: ProfileRecord) -> float:
    return (record.eager_ms or 0.0) / (record.direct_ms or 1.0)


def _is_slower_direct(record: ProfileRecord) -> bool:
    return _direct_speedup(record) < 1


def kernel_speedup(record: ProfileRecord) -> float:
    """Eager torch's time in kernels over the compiled call's. What is below a tenth of a
    microsecond is not told apart.
    """
    assert record.eager is not None and record.parts is not None, "it was measured"
    least = 1e-4
    return max(record.eager.kernels, least) / max(record.parts.kernels, least)


def _is_by_dispatch(record: ProfileRecord) -> bool:
    return record.eager is not None and kernel_speedup(record) >= 1


def _is_surely_by_dispatch(record: ProfileRecord) -> bool:
    parts, eager_ms = record.parts, record.eager_ms
    return parts is not None and eager_ms is not None and parts.kernels <= eager_ms


def _share(
    records: Sequence[ProfileRecord],
    is_so: Callable[[ProfileRecord], bool],
    seed: int,
    weighted: bool = False,
) -> Share:
    if not records:
        return Share(None, None, 0)
    hits = np.array([is_so(record) for record in records], float)
    weights = np.array([record.weight if weighted else 1.0 for record in records])
    picks = np.random.default_rng(seed).integers(0, len(records), (NUM_RESAMPLES, len(records)))
    drawn = (hits * weights)[picks].sum(axis=1) / weights[picks].sum(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    value = float((hits * weights).sum() / weights.sum())
    return Share(value, Interval(float(low), float(high)), len(records))


def _geomean(records: Sequence[ProfileRecord]) -> float:
    return geometric_mean(record.speedup for record in records if record.speedup)


def _mean_parts(records: Sequence[ProfileRecord]) -> dict[str, float]:
    """The mean over items of the share of each part in their compiled calls."""
    parts = [record.parts for record in records if record.parts is not None]
    return {name: fmean(_part_share(each, name) for each in parts) for name in PART_NAMES}


def _part_share(parts: CallParts, name: str) -> float:
    return float(getattr(parts, name)) / parts.total if parts.total else 0.0


def _median_differences(records: Sequence[ProfileRecord]) -> dict[str, float]:
    """Over items: medians, in microseconds, of compiled minus eager, of each part, and of eager's
    two parts.
    """
    if not records:
        return {}
    found = {
        "difference": median(
            1e3 * ((record.compiled_ms or 0) - (record.eager_ms or 0)) for record in records
        )
    }
    for name in PART_NAMES:
        found[name] = median(1e3 * getattr(record.parts, name) for record in records)
    known = [record.eager for record in records if record.eager is not None]
    if known:
        found["eager dispatch"] = median(1e3 * each.dispatch for each in known)
        found["eager kernels"] = median(1e3 * each.kernels for each in known)
    return found


def _quantile(ordered: Sequence[float], share: float) -> float:
    return float(np.quantile(np.array(ordered), share))


def _rank_correlation(records: Sequence[ProfileRecord]) -> float | None:
    sized = [record for record in records if record.num_ops]
    if len({record.num_ops for record in sized}) < 2:
        return None
    speedups = _ranks([record.speedup or 0.0 for record in sized])
    return float(np.corrcoef(speedups, _ranks([record.num_ops for record in sized]))[0, 1])


def _ranks(values: Sequence[float]) -> np.ndarray:
    """The rank of each value; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(np.array(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[inverse]


def _groups(records: Sequence[ProfileRecord], key: _Key) -> list[GroupShare]:
    by_name: dict[str, list[ProfileRecord]] = defaultdict(list)
    for record in records:
        by_name[key(record)].append(record)
    rank = {name: index for index, name in enumerate(_RANKED)}
    names = sorted(by_name, key=lambda name: (rank.get(name, len(rank)), -len(by_name[name]), name))
    return [_group(name, by_name[name]) for name in names]


def _group(name: str, records: Sequence[ProfileRecord]) -> GroupShare:
    slower = [record for record in records if is_slower(record) and record.eager is not None]
    return GroupShare(
        name,
        len(records),
        sum(map(is_slower, records)) / len(records),
        sum(map(is_surely_slower, records)) / len(records),
        sum(map(_is_by_dispatch, slower)) / len(slower) if slower else None,
        _geomean(records),
        _mean_parts(records),
    )


def _slow_sequences(records: Sequence[ProfileRecord]) -> list[SlowSequence]:
    """The op sequences whose items lose time, those first that lose most."""
    by_ops: dict[tuple[str, ...], list[ProfileRecord]] = defaultdict(list)
    for record in records:
        if record.ops:
            by_ops[record.ops].append(record)
    found = []
    for ops, items in by_ops.items():
        lost = sum((item.compiled_ms or 0) - (item.eager_ms or 0) for item in items)
        names = tuple(item.name for item in items if is_surely_slower(item))
        if names and lost > 0:
            found.append(SlowSequence(ops, len(items), lost, _geomean(items), names))
    return sorted(found, key=lambda each: (-each.lost_ms, each.ops))


def range_names(bounds: Sequence[float], unit: str) -> list[str]:
    """The ranges between bounds, in words.

    Examples:
        >>> range_names((1, 5), " ops")
        ['below 1 ops', '1 to below 5 ops', 'from 5 ops']
    """
    between = [
        f"{low:g} to below {high:g}{unit}" for low, high in zip(bounds, bounds[1:], strict=False)
    ]
    return [f"below {bounds[0]:g}{unit}", *between, f"from {bounds[-1]:g}{unit}"]


def _in_range(value: float, bounds: Sequence[float], unit: str) -> str:
    return range_names(bounds, unit)[bisect_right(bounds, value)]


def ops_in_words(ops: Sequence[str]) -> str:
    """The first ops of a sequence by their short names, and how many more there are.

    Examples:
        >>> ops_in_words(["torch.add", "operator.mul"])
        'add mul'
    """
    words = [op.rsplit(".", 1)[-1].strip("_") for op in ops[:MAX_OPS_SHOWN]]
    more = len(ops) - len(words)
    return " ".join(words) + (f" + {more}" if more > 0 else "")


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
"""By what items are grouped: what a call takes in eager torch, how many ops and how large arguments
it has, and where it is from."""

_RANKED = [
    *range_names(TIMES_MS, " ms"),
    *range_names(LENGTHS, " ops"),
    *range_names(MEBIBYTES, " MiB"),
]
