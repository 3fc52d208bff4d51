"""Speedups with their intervals from rounds of times, and the reference against itself."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from passnet.core.records.dtypes import Array

Rounds: TypeAlias = tuple[tuple[float, float], ...]
"""Milliseconds a call in a worker's two turns of every round."""

LOW_SHARE = 0.5
"""Share of the turns, the fastest ones, whose mean is the estimate: half of them shut out
disturbances, which only slow. Between equal programs it moved by 1.4 to 2.7 % at the 90th
percentile on a busy two-core machine, medians by 1.6 to 2.3 % (48 pairs)."""

NUM_RESAMPLES = 300
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Speedup:
    """Reference time over candidate time, with the bounds of its 95 % interval."""

    value: float
    low: float
    high: float


def low_mean(times: Array) -> Array:
    """Return the mean of the fastest `LOW_SHARE` of the last axis (at least one value).

    Examples:
        >>> float(low_mean(np.array([5.0, 1.0, 9.0, 3.0])))
        2.0
    """
    count = max(1, round(times.shape[-1] * LOW_SHARE))
    return np.partition(times, count - 1, axis=-1)[..., :count].mean(axis=-1)


def speedup(reference: Array, candidate: Array, seed: int = 0) -> Speedup:
    """Return the speedup and its interval, by resampling rounds (both sides of a round together).

    Times are [rounds, turns], in one unit. Raises ValueError without as many rounds on both sides.
    """
    num_rounds = len(candidate)
    if num_rounds == 0 or len(reference) != num_rounds:
        raise ValueError(f"{len(reference)} rounds of the reference, {num_rounds} of the candidate")
    random = np.random.default_rng(seed)
    picks = random.integers(0, num_rounds, (NUM_RESAMPLES, num_rounds))
    resampled = _estimate(reference[picks]) / _estimate(candidate[picks])
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    value = float(_estimate(reference) / _estimate(candidate))
    return Speedup(value, min(float(low), value), max(float(high), value))


def _estimate(times: Array) -> Array:
    return low_mean(times.reshape(*times.shape[:-2], -1))


def self_ratio(times: Array) -> float:
    """Return the ratio of first to second turns of times [rounds, turns]: 1 on a quiet machine."""
    first, second = low_mean(times.T)
    return float(first / second)
