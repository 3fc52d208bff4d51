"""The SOL score S of a trial: the part of the way from eager torch to the hardware's limit.

Source: SOL-ExecBench (arXiv 2603.19173), Eq. 2 and 4; NVIDIA/SOL-ExecBench, `sol_score.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    def is_unknown(self) -> bool:
        """Return whether it is correct, and was recorded without T_sol."""
        is_recorded = self.sol_ms is not None and self.reference_ms is not None
        return self.score.is_correct(CORRECT_AT) and not is_recorded

    def rated(self) -> tuple[float | None, float | None]:
        """Return S, and T_sol over the candidate's time, at most 1; None where there is none.

        S is 0 if it is not correct at t = -5, 0.5 as fast as eager torch, 1 at T_sol and below.
        There is none if eager torch is no slower than T_sol, which is no limit then.

        Examples:
            >>> Limited(Score("ok", -5, 2.0), reference_ms=5.0, sol_ms=1.0).rated()
            (0.7272727272727273, 0.4)
        """
        if not self.score.is_correct(CORRECT_AT):
            return 0.0, None
        if self.sol_ms is None or self.reference_ms is None:
            return None, None
        assert self.score.speedup is not None, "checked when the trial was made"
        time_ms = self.reference_ms / self.score.speedup
        share = min(1.0, self.sol_ms / time_ms)
        if self.reference_ms <= self.sol_ms:
            return None, share
        above_ms = max(time_ms - self.sol_ms, 0.0)
        return 1 / (1 + above_ms / (self.reference_ms - self.sol_ms)), share


@dataclass(frozen=True, slots=True)
class SolScore:
    """S of a candidate, the mean over tasks of the means over their graphs, and that of each task.

    `roofline_share` is the mean over correct trials. None and empty without T_sol.
    """

    score: float | None = None
    roofline_share: float | None = None
    tasks: dict[str, float] = field(default_factory=dict)


def sol_suite(tasks: Mapping[str, Sequence[Limited]]) -> SolScore:
    """Return S of a candidate; graphs on which T_sol is no limit are left out."""
    if any(trial.is_unknown for trials in tasks.values() for trial in trials):
        return SolScore()
    rated = {name: [trial.rated() for trial in trials] for name, trials in tasks.items()}
    scores = {name: [s for s, _ in pairs if s is not None] for name, pairs in rated.items()}
    means = {name: fmean(found) for name, found in scores.items() if found}
    shares = [share for pairs in rated.values() for _, share in pairs if share is not None]
    score = fmean(means.values()) if means else None
    return SolScore(score, fmean(shares) if shares else None, means)
