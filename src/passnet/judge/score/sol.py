"""The SOL score S of a trial: the part of the way from eager torch to the hardware's limit.

Source: SOL-ExecBench (arXiv 2603.19173), Eq. 2 and 4; NVIDIA/SOL-ExecBench, `sol_score.py`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

import numpy as np

from passnet.judge.score.interval import Interval, Measured, bootstrap, interval_of
from passnet.judge.score.tolerance import CORRECT_AT

LARGEST_CHANGE = 300.0
"""Largest change of a log speedup in a draw; S is 0 or 1 there, and `exp` does not overflow."""


def rated(trial: Measured) -> tuple[float | None, float | None]:
    """Return S, and T_sol over the candidate's time, at most 1; None where there is none.

    S is 0 if it is not correct at t = -5, 0.5 as fast as eager torch, 1 at T_sol and below.
    There is none if eager torch is no slower than T_sol, which is no limit then.

    Examples:
        >>> from passnet.judge.score.es import Score
        >>> rated(Measured(Score("ok", -5, 2.0), reference_ms=5.0, sol_ms=1.0))
        (0.7272727272727273, 0.4)
    """
    if not trial.score.is_correct(CORRECT_AT):
        return 0.0, None
    if trial.sol_ms is None or trial.reference_ms is None:
        return None, None
    assert trial.score.speedup is not None, "checked when the trial was made"
    share = min(1.0, trial.sol_ms / (trial.reference_ms / trial.score.speedup))
    if trial.reference_ms <= trial.sol_ms:
        return None, share
    return float(_redrawn(trial, np.zeros(1))[0]), share


def _redrawn(trial: Measured, log_changes: np.ndarray) -> np.ndarray:
    """Return S of a trial that has one, for changes of its log speedup."""
    if not trial.score.is_correct(CORRECT_AT):
        return np.zeros(len(log_changes))
    assert trial.score.speedup and trial.reference_ms and trial.sol_ms is not None, "it has S"
    capped = np.clip(log_changes, -LARGEST_CHANGE, LARGEST_CHANGE).tolist()
    factors = np.array(list(map(math.exp, capped)))  # numpy's exp differs between processors
    above_ms = np.maximum(trial.reference_ms / (trial.score.speedup * factors) - trial.sol_ms, 0)
    return 1 / (1 + above_ms / (trial.reference_ms - trial.sol_ms))


@dataclass(frozen=True, slots=True)
class SolScore:
    """S of a candidate, the mean over tasks of the means over their graphs, and that of each task.

    `roofline_share` is the mean over correct trials, `intervals` are those of S. None and empty
    without T_sol.
    """

    score: float | None = None
    roofline_share: float | None = None
    tasks: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)


def sol_suite(tasks: Mapping[str, Sequence[Measured]], seed: int = 0) -> SolScore:
    """Return S of a candidate with its intervals, without graphs on which T_sol is no limit.

    The same seed gives the same intervals.
    """
    pairs = {name: [rated(trial) for trial in trials] for name, trials in tasks.items()}
    if any(pair == (None, None) for found in pairs.values() for pair in found):
        return SolScore()
    scores = {name: [s for s, _ in found if s is not None] for name, found in pairs.items()}
    means = {name: fmean(found) for name, found in scores.items() if found}
    shares = [share for found in pairs.values() for _, share in found if share is not None]
    share = fmean(shares) if shares else None
    if not means:
        return SolScore(None, share)
    limited = {
        name: [
            trial for trial, (s, _) in zip(tasks[name], pairs[name], strict=True) if s is not None
        ]
        for name in means
    }
    drawn = bootstrap(limited, _mean_redrawn, seed)
    intervals = {name: interval_of(draws) for name, draws in drawn.items()}
    return SolScore(fmean(means.values()), share, means, intervals)


def _mean_redrawn(trials: Sequence[Measured], log_changes: Sequence[np.ndarray]) -> np.ndarray:
    return np.mean([_redrawn(*pair) for pair in zip(trials, log_changes, strict=True)], axis=0)
