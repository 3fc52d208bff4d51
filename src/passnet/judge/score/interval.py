"""Intervals of a score by bootstrap: over tasks, and over the repeats behind every speedup."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from passnet.errors import InputError
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY, WEIGHTS, Score, factor
from passnet.judge.score.tolerance import LEVELS

NUM_RESAMPLES = 1000
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """The bounds of a 95 % interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measured:
    """A trial with the bounds of its speedup's 95 % interval (None if not measured)."""

    score: Score
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        if self.low is not None and self.high is not None and not 0 < self.low <= self.high:
            raise InputError(
                f"the interval of a speedup is {self.low} to {self.high}; it lies above 0"
            )


def score_intervals(
    tasks: Mapping[str, Sequence[Measured]],
    b: float = SEVERE_PENALTY,
    p: float = SLOWDOWN_PENALTY,
    seed: int = 0,
) -> dict[str, Interval]:
    """Return intervals of AS over the choice of tasks, over repeated measurements, and over both.

    `tasks` resamples tasks; `repeats` redraws each speedup from the log-normal that its interval
    describes; `both` does both. The same seed gives the same intervals.
    """
    random = np.random.default_rng(seed)
    by_task = np.array([_log_as_draws(trials, b, p, random) for trials in tasks.values()])
    measured = np.array([_log_as(trials, b, p) for trials in tasks.values()])
    picks = random.integers(0, len(tasks), (NUM_RESAMPLES, len(tasks)))
    draws = {
        "tasks": measured[picks].mean(axis=1),
        "repeats": by_task.mean(axis=0),
        "both": by_task[picks.T, np.arange(NUM_RESAMPLES)].mean(axis=0),
    }
    return {name: _interval(log_scores) for name, log_scores in draws.items()}


def es_intervals(
    tasks: Mapping[str, Sequence[Measured]],
    b: float = SEVERE_PENALTY,
    p: float = SLOWDOWN_PENALTY,
    seed: int = 0,
) -> dict[int, Interval]:
    """Return intervals of ES_t over the choice of tasks, with the same draws for all levels."""
    picks = np.random.default_rng(seed).integers(0, len(tasks), (NUM_RESAMPLES, len(tasks)))
    intervals = {}
    for t in LEVELS:
        logs = np.array([
            math.fsum(math.log(factor(trial.score, t, b, p)) for trial in trials) / len(trials)
            for trials in tasks.values()
        ])  # fmt: skip
        intervals[t] = _interval(logs[picks].mean(axis=1))
    return intervals


def _interval(log_scores: np.ndarray) -> Interval:
    """Return the interval of log scores. numpy's exp differs between processors."""
    tail = (1 - CONFIDENCE) / 2
    return Interval(*map(math.exp, np.quantile(log_scores, [tail, 1 - tail])))


def _log_as(trials: Sequence[Measured], b: float, p: float) -> float:
    total = math.fsum(WEIGHTS.values())
    return math.fsum(
        WEIGHTS[t] * math.fsum(math.log(factor(trial.score, t, b, p)) for trial in trials)
        for t in LEVELS
    ) / (total * len(trials))


def _log_as_draws(
    trials: Sequence[Measured], b: float, p: float, random: np.random.Generator
) -> np.ndarray:
    """Return the log AS of a task, with the speedup of each trial drawn anew `NUM_RESAMPLES` times.

    It is linear in a trial's log speedup, by the weight of the levels at which the trial is
    correct.
    """
    total = math.fsum(WEIGHTS.values())
    draws = np.full(NUM_RESAMPLES, _log_as(trials, b, p))
    for trial in trials:
        if trial.low is None or trial.high is None or trial.score.speedup is None:
            continue
        weight = math.fsum(WEIGHTS[t] for t in LEVELS if trial.score.is_correct(min(t, 1)))
        middle = math.log(trial.score.speedup)
        spread = (math.log(trial.high) - math.log(trial.low)) / (2 * 1.96)
        log_speedups = middle + spread * random.standard_normal(NUM_RESAMPLES)
        gain = _penalised(log_speedups, p) - _penalised(np.array(middle), p)
        draws += gain * weight / (total * len(trials))
    return draws


def _penalised(log_speedup: np.ndarray, p: float) -> np.ndarray:
    return np.where(log_speedup >= 0, log_speedup, log_speedup * (p + 1))
