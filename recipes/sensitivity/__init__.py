"""The sensitivity of AS, and of the order of candidates, to the choices of the metric.

`python -m recipes.sensitivity --help` runs it.

The AS of a task is the geometric mean of its trials' values, which follow from each trial alone. So
a rule is a function of one trial, and everything else is means of logarithms.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

import numpy as np

from passnet.errors import InputError
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY, WEIGHTS, Score, factor
from passnet.judge.score.interval import CONFIDENCE, NUM_RESAMPLES, Interval
from passnet.judge.score.status import TOLERATED_FROM
from passnet.judge.score.tolerance import LEVELS

Truth: TypeAlias = Literal["eager", "float64"]


@dataclass(frozen=True, slots=True)
class ScoredTrial:
    """A trial, and whether it failed for the order of its strides alone."""

    score: Score
    is_only_strides: bool = False


@dataclass(frozen=True, slots=True)
class ScoreRule:
    """One way to read the metric.

    Args:
        group: what differs from the published way, in a word.
        name: how it differs.
        b, p: the penalties.
        weights: W_t by level.
        shift: trials are correct from so many levels later on: the tolerances are stricter; below
            0 they are looser.
        is_tolerant: whether errors are tolerated at large t at all.
        truth: what a correct output is near to.
        is_pooled: whether all trials are taken as one task.
        demands_strides: whether trials count that failed for the order of their strides alone.
    """

    group: str
    name: str
    b: float = SEVERE_PENALTY
    p: float = SLOWDOWN_PENALTY
    weights: Mapping[int, float] = field(default_factory=lambda: WEIGHTS)
    shift: int = 0
    is_tolerant: bool = True
    truth: Truth = "eager"
    is_pooled: bool = False
    demands_strides: bool = True


PUBLISHED_RULE = ScoreRule("published", "as published")


def _decaying(rate: float) -> dict[int, float]:
    """Return weights of 1 up to t = -3, then falling at a rate; the published rate is 0.8."""
    return {t: 0.001 if t < -5 or t > 3 else rate ** max(0, t + 3) for t in LEVELS}


RULES: tuple[ScoreRule, ...] = (
    PUBLISHED_RULE,
    *(ScoreRule("b", f"b = {b:g}", b=b) for b in (0.01, 0.05, 0.2, 0.5)),
    *(ScoreRule("p", f"p = {p:g}", p=p) for p in (0.5, 1.0, 2.0)),
    ScoreRule("weights", "t = -5 alone", weights={-5: 1.0}),
    ScoreRule("weights", "t = -5 to -3 alike", weights=dict.fromkeys(range(-5, -2), 1.0)),
    ScoreRule("weights", "falling by half", weights=_decaying(0.5)),
    ScoreRule("weights", "t = -5 to 3 alike", weights=_decaying(1.0)),
    ScoreRule("tolerance", "one level stricter", shift=1),
    ScoreRule("tolerance", "one level looser", shift=-1),
    ScoreRule("tolerance", "no error tolerated", is_tolerant=False),
    ScoreRule("truth", "against float64 (AS64)", truth="float64"),
    ScoreRule("tasks", "all trials pooled", is_pooled=True),
    ScoreRule("strides", "not demanded: such trials left out", demands_strides=False),
)
"""The published rule, and its variations, each alone."""


@dataclass(frozen=True, slots=True)
class RuledScore:
    """The score of a candidate under a rule, and its place in the order, from 1."""

    value: float
    interval: Interval
    rank: int


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """The scores of all candidates under a rule, and the agreement of their order with the
    published one: Kendall's tau-b, None with one candidate.

    `num_left_out` trials did not count.
    """

    rule: ScoreRule
    scores: Mapping[str, RuledScore]
    tau: float | None
    tau_interval: Interval | None
    num_left_out: int


CandidateTasks: TypeAlias = Mapping[str, Mapping[str, Sequence[ScoredTrial]]]
"""The trials of every candidate, by task."""


def sensitivity(
    candidates: CandidateTasks, rules: Sequence[ScoreRule] = RULES, seed: int = 0
) -> list[RuleOutcome]:
    """Score candidates under each rule, with 95 % bootstrap intervals over tasks. All candidates
    and rules share the draws; candidates are compared on the tasks that all of them have.

    Raises:
        InputError: there is no candidate, or no task that all have.
    """
    if not candidates:
        raise InputError("there is no candidate to score")
    shared = set.intersection(*(set(tasks) for tasks in candidates.values()))
    tasks = [task for task in next(iter(candidates.values())) if task in shared]
    if not tasks:
        raise InputError("the candidates have no task in common; give runs over one suite")
    picks = np.random.default_rng(seed).integers(0, len(tasks), (NUM_RESAMPLES, len(tasks)))
    published, _ = _logs(candidates, tasks, PUBLISHED_RULE, picks)
    return [_outcome(candidates, tasks, rule, picks, published) for rule in rules]


def _outcome(
    candidates: CandidateTasks,
    tasks: Sequence[str],
    rule: ScoreRule,
    picks: np.ndarray,
    published: np.ndarray,
) -> RuleOutcome:
    logs, num_left_out = _logs(candidates, tasks, rule, picks)
    tail = (1 - CONFIDENCE) / 2
    lows, highs = np.quantile(logs[1:], [tail, 1 - tail], axis=0)
    ranks = (logs[0][None, :] > logs[0][:, None]).sum(axis=1) + 1
    scores = {
        name: RuledScore(
            math.exp(log), Interval(math.exp(min(low, log)), math.exp(max(high, log))), int(rank)
        )
        for name, log, low, high, rank in zip(candidates, logs[0], lows, highs, ranks, strict=True)
    }
    if len(candidates) < 2:
        return RuleOutcome(rule, scores, None, None, num_left_out)
    taus = np.array([kendall_tau(*pair) for pair in zip(published, logs, strict=True)])
    low, high = np.quantile(taus[1:], [tail, 1 - tail])
    tau = float(taus[0])
    interval = Interval(min(float(low), tau), max(float(high), tau))
    return RuleOutcome(rule, scores, tau, interval, num_left_out)


def _logs(
    candidates: CandidateTasks, tasks: Sequence[str], rule: ScoreRule, picks: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the logarithms of all scores, and the number of trials that did not count.

    Shapes:
        returned: [1 + draws, candidates], the first row over all tasks
    """
    columns = []
    num_left_out = 0
    drawn = np.vstack([np.arange(len(tasks)), picks])
    for by_task in candidates.values():
        sums, counts = np.zeros(len(tasks)), np.zeros(len(tasks))
        for index, task in enumerate(tasks):
            counted = [
                trial
                for trial in by_task[task]
                if rule.demands_strides or not trial.is_only_strides
            ]
            num_left_out += len(by_task[task]) - len(counted)
            sums[index] = math.fsum(log_as(trial.score, rule) for trial in counted)
            counts[index] = len(counted)
        if rule.is_pooled:
            columns.append(sums[drawn].sum(axis=1) / np.maximum(counts[drawn].sum(axis=1), 1))
        else:
            has_any = counts > 0
            means = np.where(has_any, sums / np.maximum(counts, 1), 0.0)
            weights = has_any.astype(float)[drawn]
            columns.append(means[drawn].sum(axis=1) / np.maximum(weights.sum(axis=1), 1))
    return np.array(columns).T, num_left_out


def log_as(trial: Score, rule: ScoreRule = PUBLISHED_RULE) -> float:
    """Return the logarithm of the AS of one trial under a rule.

    Examples:
        >>> round(math.exp(log_as(Score("ok", -5, 1.0))), 4)
        0.9981
        >>> round(math.exp(log_as(Score("ok", -3, 1.0), ScoreRule("", "", is_tolerant=False))), 4)
        0.4607
    """
    if rule.truth == "float64":
        trial = trial.against_float64()
    if rule.shift and trial.smallest_t is not None:
        later = max(trial.smallest_t + rule.shift, LEVELS[0])
        trial = replace(trial, smallest_t=later if later in LEVELS else None)
    total = math.fsum(rule.weights.values())
    return math.fsum(
        weight * math.log(_factor(trial, t, rule)) for t, weight in rule.weights.items()
    ) / total  # fmt: skip


def _factor(trial: Score, t: int, rule: ScoreRule) -> float:
    value = factor(trial, t, rule.b, rule.p)
    is_tolerated = not trial.is_correct(min(t, 1)) and TOLERATED_FROM[trial.status] is not None
    return rule.b if is_tolerated and not rule.is_tolerant else value


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Kendall's tau-b of two lists of numbers: 1 where they are in the same order, -1 in the
    opposite one; 0 where one of them has no order at all.

    Examples:
        >>> kendall_tau([1, 2, 3], [10, 20, 30]), kendall_tau([1, 2, 3], [3, 2, 1])
        (1.0, -1.0)
        >>> round(kendall_tau([1, 2, 3, 4], [1, 3, 2, 4]), 4)
        0.6667

    Raises:
        ValueError: they differ in length, or have fewer than two numbers.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"two lists of two numbers at least: {len(first)} and {len(second)}")
    upper = np.triu_indices(len(first), 1)
    ones, twos = (
        np.sign(np.subtract.outer(values, values))[upper]
        for values in (np.asarray(first, float), np.asarray(second, float))
    )
    spread = math.sqrt(float((ones**2).sum()) * float((twos**2).sum()))
    return float((ones * twos).sum()) / spread if spread else 0.0
