"""Intervals of a score by bootstrap: over tasks, and over the repeats behind every speedup."""

import math
from collections.abc import Callable, Mapping, Sequence
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
    """A trial with the bounds of its speedup's 95 % interval, and two times; None if not known.

    `reference_ms` is the time of eager torch, `sol_ms` the least time of the graph, T_sol.
    """

    score: Score
    low: float | None = None
    high: float | None = None
    reference_ms: float | None = None
    sol_ms: float | None = None

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

    The same seed gives the same intervals.
    """
    drawn = bootstrap(tasks, lambda trials, changes: _log_as_draws(trials, changes, b, p), seed)
    return {name: interval_of(logs, math.exp) for name, logs in drawn.items()}


def bootstrap(
    tasks: Mapping[str, Sequence[Measured]],
    score: Callable[[Sequence[Measured], Sequence[np.ndarray]], np.ndarray],
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Return draws of the mean of the tasks' scores.

    `tasks` resamples tasks; `repeats` redraws each speedup from the log-normal that its interval
    describes; `both` does both. The same seed gives the same draws.

    Args:
        tasks: the trials of each task.
        score: scores a task once for each change. Its arguments are the trials, and for each trial
            the changes of its log speedup: 0 for the score as measured, then one for each draw.
        seed: of the random numbers.
    """
    random = np.random.default_rng(seed)
    by_task = np.array([
        score(trials, [_log_changes(trial, random) for trial in trials])
        for trials in tasks.values()
    ])  # fmt: skip
    measured, redrawn = by_task[:, 0], by_task[:, 1:]
    picks = random.integers(0, len(tasks), (NUM_RESAMPLES, len(tasks)))
    return {
        "tasks": measured[picks].mean(axis=1),
        "repeats": redrawn.mean(axis=0),
        "both": redrawn[picks.T, np.arange(NUM_RESAMPLES)].mean(axis=0),
    }


def _log_changes(trial: Measured, random: np.random.Generator) -> np.ndarray:
    changes = np.zeros(1 + NUM_RESAMPLES)
    if trial.low is not None and trial.high is not None:
        spread = (math.log(trial.high) - math.log(trial.low)) / (2 * 1.96)
        changes[1:] = spread * random.standard_normal(NUM_RESAMPLES)
    return changes


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
        intervals[t] = interval_of(logs[picks].mean(axis=1), math.exp)
    return intervals


def interval_of(draws: np.ndarray, bound: Callable[[float], float] = float) -> Interval:
    """Return the interval of draws, with `bound` applied to both ends.

    For log scores it is `math.exp`; numpy's exp differs between processors.
    """
    tail = (1 - CONFIDENCE) / 2
    return Interval(*map(bound, np.quantile(draws, [tail, 1 - tail])))


def _log_as(trials: Sequence[Measured], b: float, p: float) -> float:
    total = math.fsum(WEIGHTS.values())
    return math.fsum(
        WEIGHTS[t] * math.fsum(math.log(factor(trial.score, t, b, p)) for trial in trials)
        for t in LEVELS
    ) / (total * len(trials))


def _log_as_draws(
    trials: Sequence[Measured], changes: Sequence[np.ndarray], b: float, p: float
) -> np.ndarray:
    """Return the log AS of a task for changes of the log speedup of each trial.

    It is linear in a trial's log speedup, by the weight of the levels at which the trial is
    correct.
    """
    total = math.fsum(WEIGHTS.values())
    draws = np.full(1 + NUM_RESAMPLES, _log_as(trials, b, p))
    for trial, log_changes in zip(trials, changes, strict=True):
        if not trial.score.is_correct(1):
            continue
        assert trial.score.speedup is not None, "checked when the trial was made"
        weight = math.fsum(WEIGHTS[t] for t in LEVELS if trial.score.is_correct(min(t, 1)))
        middle = math.log(trial.score.speedup)
        gain = _penalised(middle + log_changes, p) - _penalised(np.array(middle), p)
        draws += gain * weight / (total * len(trials))
    return draws


def _penalised(log_speedup: np.ndarray, p: float) -> np.ndarray:
    return np.where(log_speedup >= 0, log_speedup, log_speedup * (p + 1))
