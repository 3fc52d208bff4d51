"""Scores of a run folder, or of any JSON-lines file with the few fields that a score needs."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from passnet.bench.run_record import TRIALS_FILE
from passnet.core.jobs.run_folder import last_records
from passnet.core.records.serialise import has_lines, read_lines
from passnet.errors import InputError, MeasureError
from passnet.judge.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY, Score
from passnet.judge.score.interval import Interval, Measured, es_intervals, score_intervals
from passnet.judge.score.share_score import share_score
from passnet.judge.score.sol import SolScore, sol_suite
from passnet.judge.score.status import STATUSES, Status
from passnet.judge.score.suite_score import SuiteScore, score_suite
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.timing.roofline import Roofline
from passnet.judge.trial import Trial

ALL_UNSTABLE = (
    "every trial is unstable, so there is nothing to score; measure again on a quieter machine, "
    "with --resume --retry"
)
"""The text for a candidate without a score."""

NO_SHARES: Mapping[str, float] = MappingProxyType({})
"""The shares of tasks in the time of nets, where none are known."""


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of a trial that scores are made from; others are ignored."""

    task: str
    graph: str
    status: str
    smallest_t: int | None
    speedup: float | None
    candidate: str = "candidate"
    speedup_low: float | None = None
    speedup_high: float | None = None
    reference_ms: float | None = None
    relative_error: float | None = None
    eager_error: float | None = None
    error: str | None = None
    roofline: Roofline | None = None
    reference_cold_ms: float | None = None
    candidate_cold_ms: float | None = None


@dataclass(frozen=True)
class CandidateScore:
    """The score of one candidate with its intervals, and the number of trials by status."""

    candidate: str
    suite: SuiteScore
    intervals: dict[str, Interval]
    """Intervals of AS."""

    float64_intervals: dict[str, Interval]
    """Intervals of AS64."""

    es_intervals: dict[int, Interval]
    """Intervals of ES_t over tasks."""

    sol: SolScore
    cold_speedup: float | None
    """Geometric mean of speedups with cold caches, over correct trials; None without any."""

    statuses: dict[str, int]
    num_trials: int
    num_unstable: int
    """Trials that are in no score, as they were not measured."""

    num_tasks_unscored: int
    """Tasks with unstable trials only."""


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a run folder, or of a JSON-lines file with a trial on each line.

    In a run, the last record of a trial counts.

    Raises:
        InputError: nothing there, or a line without the fields (its number is named).
    """
    if path.is_dir():
        path = path / TRIALS_FILE
        if not has_lines(path):
            raise InputError(f"{path.parent}: holds no {TRIALS_FILE}; give a run folder")
    if path.name == TRIALS_FILE:
        rows = list(last_records(path, Row, lambda row: (row.graph, row.candidate)).values())
    else:
        rows = list(read_lines(path, Row))
    for number, row in enumerate(rows, start=1):
        if row.status not in STATUSES:
            raise InputError(
                f"{path}: row {number}: unknown status {row.status!r}; known are "
                f"{', '.join(STATUSES)}"
            )
    if not rows:
        raise InputError(f"{path}: holds no trial")
    return rows


def measured(row: Row | Trial) -> Measured:
    """Return the part of a row that its score needs.

    Raises:
        InputError: it contradicts itself.
    """
    status: Status = row.status  # type: ignore[assignment]
    sol_ms = None if row.roofline is None else row.roofline.ms
    try:
        score = Score(status, row.smallest_t, row.speedup, is_near(row))
        return Measured(score, row.speedup_low, row.speedup_high, row.reference_ms, sol_ms)
    except InputError as cause:
        raise InputError(f"trial {row.task}/{row.graph}: {cause}") from cause


def is_correct(row: Row | Trial) -> bool:
    """Return True if a trial ran and its outputs agree at t = -5."""
    return row.status == "ok" and row.smallest_t is not None and row.smallest_t <= CORRECT_AT


def cold_speedup(rows: Iterable[Row]) -> float | None:
    """Return the geometric mean of speedups with cold caches over correct trials, if any has one.

    Formula: exp(mean of log(reference_cold_ms / candidate_cold_ms)).
    """
    logs = [
        log(row.reference_cold_ms / row.candidate_cold_ms)
        for row in rows
        if row.reference_cold_ms and row.candidate_cold_ms and is_correct(row)
    ]
    return exp(fmean(logs)) if logs else None


def is_near(row: Row | Trial) -> bool:
    """Return True if a trial's outputs were measured to be as near to float64 as eager torch's."""
    if row.status != "ok" or row.relative_error is None or row.eager_error is None:
        return False
    return row.relative_error <= row.eager_error


def score_rows(
    rows: Iterable[Row], b: float = SEVERE_PENALTY, p: float = SLOWDOWN_PENALTY
) -> list[CandidateScore]:
    """Score every candidate but the untimed ones, in order of appearance.

    Raises:
        InputError: b or p is out of range.
        MeasureError: no candidate has a trial that can be scored.
    """
    rows = list(rows)
    by_candidate: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_candidate[row.candidate].append(row)
    untimed = untimed_candidates(rows)
    if len(untimed) == len(by_candidate):
        raise MeasureError(f"{', '.join(untimed)}: {ALL_UNSTABLE}")
    return [
        _score(name, its_rows, b, p)
        for name, its_rows in by_candidate.items()
        if name not in untimed
    ]


def untimed_candidates(rows: Iterable[Row]) -> list[str]:
    """Return the candidates without a score, as all their trials are unstable."""
    statuses: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        statuses[row.candidate].add(row.status)
    return [name for name, its_statuses in statuses.items() if its_statuses == {"unstable"}]


def _score(name: str, rows: list[Row], b: float, p: float) -> CandidateScore:
    tasks: dict[str, list[Measured]] = defaultdict(list)
    for row in rows:
        if row.status != "unstable":
            tasks[row.task].append(measured(row))
    plain = {task: [trial.score for trial in trials] for task, trials in tasks.items()}
    return CandidateScore(
        candidate=name,
        suite=score_suite(plain, b, p),
        intervals=score_intervals(tasks, b, p),
        float64_intervals=score_intervals(_against_float64(tasks), b, p),
        es_intervals=es_intervals(tasks, b, p),
        sol=sol_suite(tasks),
        cold_speedup=cold_speedup(rows),
        statuses=dict(Counter(row.status for row in rows)),
        num_trials=len(rows),
        num_unstable=sum(row.status == "unstable" for row in rows),
        num_tasks_unscored=len({row.task for row in rows} - set(tasks)),
    )


def _against_float64(tasks: Mapping[str, Sequence[Measured]]) -> dict[str, list[Measured]]:
    return {
        task: [replace(trial, score=trial.score.against_float64()) for trial in trials]
        for task, trials in tasks.items()
    }


def as_json(
    scores: list[CandidateScore],
    b: float = SEVERE_PENALTY,
    p: float = SLOWDOWN_PENALTY,
    shares: Mapping[str, float] = NO_SHARES,
) -> dict[str, Any]:
    """Return the scores as JSON: one candidate flat, several under `candidates`.

    `shares` are those of the tasks in the time of nets; without any, there is no AS by share.
    """
    records = {score.candidate: _record(score, b, p, shares) for score in scores}
    if len(scores) == 1:
        return records[scores[0].candidate]
    return {"candidates": records, "b": b, "p": p}


def _record(
    score: CandidateScore, b: float, p: float, shares: Mapping[str, float]
) -> dict[str, Any]:
    suite, by_share = score.suite, share_score(score.suite.tasks, shares)
    return {
        "candidate": score.candidate,
        "b": b,
        "p": p,
        "as": suite.score,
        "as_pooled": suite.score_pooled,
        "as_interval": _bounds(score.intervals),
        **({"as_by_share": asdict(by_share)} if by_share else {}),
        "as64": suite.score_float64,
        "as64_interval": _bounds(score.float64_intervals),
        "es": {str(t): es for t, es in suite.es.items()},
        "es_pooled": {str(t): es for t, es in suite.es_pooled.items()},
        "columns": asdict(suite.columns),
        "tasks": suite.tasks,
        "tasks_as64": suite.tasks_float64,
        "sol": score.sol.score,
        "sol_interval": _bounds(score.sol.intervals),
        "roofline_share": score.sol.roofline_share,
        "tasks_sol": score.sol.tasks,
        "cold_speedup": score.cold_speedup,
        "statuses": score.statuses,
        "num_trials": score.num_trials,
        "num_unstable": score.num_unstable,
        "num_tasks_unscored": score.num_tasks_unscored,
    }


def _bounds(intervals: Mapping[str, Interval]) -> dict[str, list[float]]:
    return {name: [bounds.low, bounds.high] for name, bounds in intervals.items()}
