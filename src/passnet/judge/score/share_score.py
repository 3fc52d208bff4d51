"""AS by share: the tasks' AS, each weighted by its share of the time of nets."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, log

FLATTER, STEEPER = 0.5, 2.0
"""Powers of the shares that show how much the score depends on them."""


@dataclass(frozen=True, slots=True)
class ShareScore:
    """The AS by share of one candidate, and its sensitivity.

    Attributes:
        score: weighted geometric mean of the tasks' AS.
        num_tasks: tasks with a score and a share above 0.
        flatter, steeper: the same with the square roots and with the squares of the shares.
        largest_change: score without one task over `score`, for the task that changes it most;
            None with one task.
        changed_by: that task.
    """

    score: float
    num_tasks: int
    flatter: float
    steeper: float
    largest_change: float | None
    changed_by: str | None


def share_score(tasks: Mapping[str, float], shares: Mapping[str, float]) -> ShareScore | None:
    """Return the AS by share; None if no task has a share above 0.

    Formula: exp(sum of w_t log AS_t) with w_t = share_t / (sum of shares), over the tasks that have
    both.

    Args:
        tasks: AS of each task.
        shares: share of each task in the time of nets; their scale does not matter.

    Examples:
        >>> round(share_score({"a": 16.0, "b": 1.0}, {"a": 0.1, "b": 0.3}).score, 6)
        2.0
    """
    weights = {task: shares[task] for task in tasks if shares.get(task, 0) > 0}
    if not weights:
        return None
    score = _mean(tasks, weights)
    without = {
        left_out: _mean(tasks, {task: w for task, w in weights.items() if task != left_out}) / score
        for left_out in weights
        if len(weights) > 1
    }
    changed_by = max(without, key=lambda task: abs(log(without[task])), default=None)
    flatter, steeper = (
        _mean(tasks, {task: weight**power for task, weight in weights.items()})
        for power in (FLATTER, STEEPER)
    )
    largest_change = None if changed_by is None else without[changed_by]
    return ShareScore(score, len(weights), flatter, steeper, largest_change, changed_by)


def _mean(tasks: Mapping[str, float], weights: Mapping[str, float]) -> float:
    total = sum(weights.values())
    return exp(sum(weight * log(tasks[task]) for task, weight in weights.items()) / total)
