"""Scores over a suite: by task and in all, with the columns of the published table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from passnet.errors import InputError
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY, Score, aggregate, es_by_t
from passnet.judge.score.tolerance import CORRECT_AT, LEVELS

Tasks = Mapping[str, Sequence[Score]]
"""The scored trials of every task."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The other columns of the published table.

    `sample_correct`: share of tasks whose trials are all correct. `subgraph_correct`: share of
    correct trials. `geomean_speedup`: over correct trials, None when there is none. `fast_1`: share
    of trials that are correct and not slower. Correct is meant at t = -5. `float64_correct`: share
    of trials that are correct, or as near to float64 as eager torch.
    """

    sample_correct: float
    subgraph_correct: float
    geomean_speedup: float | None
    fast_1: float
    float64_correct: float


@dataclass(frozen=True, slots=True)
class SuiteScore:
    """The score of one candidate.

    `score` is the headline AS, the geometric mean of the tasks' AS; `score_pooled` takes all trials
    as one task. `es` and `es_pooled` are ES_t in the same two ways. `tasks` holds the AS of each.
    `score_float64` is AS64: the headline, with float64 as ground truth (`Score.against_float64`);
    `tasks_float64` holds that of each task.
    """

    score: float
    score_pooled: float
    es: dict[int, float]
    es_pooled: dict[int, float]
    columns: Columns
    tasks: dict[str, float]
    score_float64: float
    tasks_float64: dict[str, float]


def score_suite(tasks: Tasks, b: float = SEVERE_PENALTY, p: float = SLOWDOWN_PENALTY) -> SuiteScore:
    """Return the score of a candidate from the trials of every task.

    Raises InputError without a task, or for a task without trials.
    """
    if not tasks:
        raise InputError("there is no trial to score")
    by_task = {name: es_by_t(trials, b, p) for name, trials in tasks.items()}
    scores = {name: aggregate(by_t) for name, by_t in by_task.items()}
    scores_float64 = {
        name: aggregate(es_by_t([trial.against_float64() for trial in trials], b, p))
        for name, trials in tasks.items()
    }
    pooled = es_by_t([trial for trials in tasks.values() for trial in trials], b, p)
    return SuiteScore(
        score=geometric_mean(list(scores.values())),
        score_pooled=aggregate(pooled),
        es={t: geometric_mean([by_t[t] for by_t in by_task.values()]) for t in LEVELS},
        es_pooled=pooled,
        columns=_columns(tasks),
        tasks=scores,
        score_float64=geometric_mean(list(scores_float64.values())),
        tasks_float64=scores_float64,
    )


def _columns(tasks: Tasks) -> Columns:
    trials = [trial for its_trials in tasks.values() for trial in its_trials]
    correct = [trial for trial in trials if trial.is_correct(CORRECT_AT)]
    speedups = [trial.speedup for trial in correct if trial.speedup is not None]
    num_correct_tasks = sum(
        all(trial.is_correct(CORRECT_AT) for trial in its_trials) for its_trials in tasks.values()
    )
    return Columns(
        sample_correct=num_correct_tasks / len(tasks),
        subgraph_correct=len(correct) / len(trials),
        geomean_speedup=geometric_mean(speedups) if speedups else None,
        fast_1=sum(speedup >= 1 for speedup in speedups) / len(trials),
        float64_correct=sum(trial.against_float64().is_correct(CORRECT_AT) for trial in trials)
        / len(trials),
    )
