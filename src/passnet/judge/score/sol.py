"""The SOL score S of a trial: the part of the way from eager torch to the hardware's limit.

Source: SOL-ExecBench (arXiv 2603.19173), Eq. 2 and 4; NVIDIA/SOL-ExecBench, `sol_score.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from passnet.judge.score.es import Score
from passnet.judge.score.tolerance import CORRECT_AT


@dataclass(frozen=True, slots=True)
class Limited:
    """A trial with the time of eager torch and its graph's least time T_sol, None if not known."""

    score: Score
    reference_ms: float | None = None
    sol_ms: float | None = None

    @property
    def is_correct(self) -> bool:
        """Return whether it is correct at t = -5."""
        return self.score.is_correct(CORRECT_AT)

    @property
    def has_limit(self) -> bool:
        """Return whether eager torch is slower than T_sol; if not, T_sol is no limit here."""
        return not (self.sol_ms and self.reference_ms and self.reference_ms <= self.sol_ms)

    @property
    def sol(self) -> float | None:
        """Return S: 0 if not correct, 0.5 as fast as eager torch, 1 at T_sol and below.

        Examples:
            >>> Limited(Score("ok", -5, 2.0), reference_ms=5.0, sol_ms=1.0).sol
            0.7272727272727273
        """
        if not self.is_correct:
            return 0.0
        if self.sol_ms is None or self.reference_ms is None or not self.has_limit:
            return None
        assert self.score.speedup is not None, "checked when the trial was made"
        above_ms = max(self.reference_ms / self.score.speedup - self.sol_ms, 0.0)
        return 1 / (1 + above_ms / (self.reference_ms - self.sol_ms))

    @property
    def roofline_share(self) -> float | None:
        """Return T_sol over the candidate's time, at most 1; None unless it is correct."""
        if not self.is_correct or self.sol_ms is None or self.reference_ms is None:
            return None
        assert self.score.speedup is not None, "checked when the trial was made"
        return min(1.0, self.sol_ms * self.score.speedup / self.reference_ms)


@dataclass(frozen=True, slots=True)
class SolScore:
    """S of a candidate: the mean over tasks of the means over their graphs; with those by task.

    `roofline_share` is the mean over correct trials. All are None without T_sol.
    """

    score: float | None
    roofline_share: float | None
    tasks: dict[str, float]


def sol_suite(tasks: Mapping[str, Sequence[Limited]]) -> SolScore:
    """Return S of a candidate; graphs on which T_sol is no limit are left out."""
    trials = [trial for its_trials in tasks.values() for trial in its_trials]
    if any(trial.sol is None and trial.has_limit for trial in trials):
        return SolScore(None, None, {})
    means = {}
    for name, its_trials in tasks.items():
        scores = [trial.sol for trial in its_trials if trial.has_limit and trial.sol is not None]
        if scores:
            means[name] = fmean(scores)
    shares = [trial.roofline_share for trial in trials if trial.roofline_share is not None]
    return SolScore(
        fmean(means.values()) if means else None, fmean(shares) if shares else None, means
    )
