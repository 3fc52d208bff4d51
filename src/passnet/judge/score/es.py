"""The Error-aware Speedup Score ES_t and its aggregate AS; pure arithmetic.

Source: PassNet (arXiv 2605.29357), Eq. 4 and 10; GraphNet (arXiv 2510.24035), Eq. 1 to 3.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from passnet.errors import InputError
from passnet.judge.score.status import TOLERATED_FROM, Status
from passnet.judge.score.tolerance import CORRECT_AT, LEVELS

SEVERE_PENALTY = 0.1
"""Default of b, the factor of an error that is not tolerated."""
SLOWDOWN_PENALTY = 0.0
"""Default of p: a correct trial with speedup s < 1 has the factor s^(p+1)."""
WEIGHTS: dict[int, float] = {
    **dict.fromkeys(range(-10, -5), 0.001),
    **dict.fromkeys(range(-5, -2), 1.0),
    **dict(zip(range(-2, 5), (0.8, 0.64, 0.512, 0.4096, 0.32768, 0.262144, 0.001), strict=True)),
}
"""W_t of the aggregate score; they sum to 5.957424."""


@dataclass(frozen=True, slots=True)
class Score:
    """The part of a trial that its score depends on.

    `smallest_t` is the level from which it is correct (None: at none), `speedup` its reference time
    over its candidate time. `is_near`: its outputs are as near to float64 as eager torch's.
    """

    status: Status
    smallest_t: int | None = None
    speedup: float | None = None
    is_near: bool = False

    def __post_init__(self) -> None:
        if self.status == "unstable":
            raise InputError("an unstable trial has no score; leave it out and count it")
        if self.status not in TOLERATED_FROM:
            raise InputError(f"unknown status {self.status!r}")
        if self.smallest_t is not None and self.smallest_t not in LEVELS:
            raise InputError(
                f"smallest_t is {self.smallest_t}, it lies within -10 and 4 or is null"
            )
        needs_speedup = self.status == "ok" and self.smallest_t is not None
        if needs_speedup and not (self.speedup and 0 < self.speedup < math.inf):
            raise InputError(f"speedup is {self.speedup}; a correct trial needs a positive number")

    def is_correct(self, t: int) -> bool:
        """Return whether the trial is correct at level t."""
        return self.status == "ok" and self.smallest_t is not None and self.smallest_t <= t

    def against_float64(self) -> "Score":
        """Return the same trial with float64 as ground truth.

        A trial whose outputs are as near to float64 as those of eager torch is correct at t = -5,
        unless it agrees with eager torch at no level.

        Examples:
            >>> Score("ok", -2, 1.5, is_near=True).against_float64().is_correct(-5)
            True
            >>> Score("ok", None, 1.5, is_near=True).against_float64().is_correct(4)
            False
        """
        if not (self.status == "ok" and self.is_near and self.smallest_t is not None):
            return self
        return replace(self, smallest_t=min(self.smallest_t, CORRECT_AT))


def factor(trial: Score, t: int, b: float = SEVERE_PENALTY, p: float = SLOWDOWN_PENALTY) -> float:
    """Return a trial's factor of ES_t: its speedup, a penalty, or 1 for a tolerated error.

    From t = 1 on the tolerance of values is frozen; what grows then is which errors are tolerated.

    Examples:
        >>> factor(Score("ok", -5, 2.0), -5), factor(Score("ok", -5, 2.0), -6)
        (2.0, 0.1)
        >>> factor(Score("runtime_error"), 2), factor(Score("runtime_error"), 3)
        (0.1, 1.0)
    """
    if trial.is_correct(min(t, 1)):
        assert trial.speedup is not None, "checked when the trial was made"
        return trial.speedup if trial.speedup >= 1 else trial.speedup ** (p + 1)
    tolerated = TOLERATED_FROM[trial.status]
    return 1.0 if tolerated is not None and t >= tolerated else b


def es(
    trials: Sequence[Score], t: int, b: float = SEVERE_PENALTY, p: float = SLOWDOWN_PENALTY
) -> float:
    """Return ES_t: the geometric mean of the factors at level t.

    Raises InputError without trials, or unless 0 < b <= 1 and p >= 0.
    """
    _check(trials, b, p)
    return geometric_mean(factor(trial, t, b, p) for trial in trials)


def es_by_t(
    trials: Sequence[Score], b: float = SEVERE_PENALTY, p: float = SLOWDOWN_PENALTY
) -> dict[int, float]:
    """Return ES_t at every level."""
    return {t: es(trials, t, b, p) for t in LEVELS}


def aggregate(by_t: Mapping[int, float], weights: Mapping[int, float] = WEIGHTS) -> float:
    """Return AS: the weighted geometric mean of ES_t over the levels.

    Examples:
        >>> round(aggregate(es_by_t([Score("ok", -5, 1.0)])), 4)
        0.9981
    """
    total = math.fsum(weights.values())
    return math.exp(math.fsum(weights[t] * math.log(es_t) for t, es_t in by_t.items()) / total)


def _check(trials: Sequence[Score], b: float, p: float) -> None:
    if not trials:
        raise InputError("there is no trial to score")
    if not 0 < b <= 1:
        raise InputError(f"b is {b}; it must lie within 0 (not included) and 1")
    if p < 0:
        raise InputError(f"p is {p}; it must not be negative")
