"""The figures of systems on the same tasks: how often each is correct, and its AS."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from passnet.errors import InputError
from passnet.judge.score.es import Score, aggregate, es_by_t
from passnet.pages.tables.tables import Table
from passnet_loops.evaluate import AnswerRecord

NUM_RESAMPLES = 2000

FigureInterval = tuple[float, float, float]
"""A figure and its 95 % interval over the choice of tasks."""


@dataclass(frozen=True, slots=True)
class SystemSummary:
    """A system's figures: shares with their 95 % intervals over tasks."""

    system: str
    num_graphs: int
    num_tasks: int
    correct: float
    correct_low: float
    correct_high: float
    faster: float | None
    score: FigureInterval | None
    """AS; None where answers were not timed."""

    findings: int
    """Answers that are rejected as exploits."""

    not_judged: int = 0
    """Graphs without a verdict: they count as not correct, and for no AS."""

    flagged: int = 0
    """Correct answers that a person should read."""


@dataclass(frozen=True, slots=True)
class PairedGain:
    """The gain in correct answers of a system over another, with the 95 % interval."""

    system: str
    other: str
    gain: float
    low: float
    high: float
    won: int
    """Graphs on which it is more often correct."""

    lost: int
    score_ratio: FigureInterval | None = None
    """Its AS divided by the other's, where both were timed."""


def summary(
    name: str, records: Sequence[AnswerRecord], is_timed: bool = False, seed: int = 0
) -> SystemSummary:
    """Return the figures of a system; with AS where answers were timed."""
    share, low, high = bootstrap([(r.task, float(r.is_correct)) for r in records], seed)
    return SystemSummary(
        name,
        len(records),
        len({record.task for record in records}),
        share,
        low,
        high,
        _mean([r.is_correct and (r.speedup_low or 0) > 1 for r in records]) if is_timed else None,
        _exponential(bootstrap(list(log_scores(records).items()), seed)) if is_timed else None,
        sum(bool(record.findings) for record in records),
        sum(record.verdict == "not judged" for record in records),
        sum(record.is_correct and bool(record.flags) for record in records),
    )


NamedRecords = tuple[str, Sequence[AnswerRecord]]
"""A system's name and records."""


def paired_gain(
    first: NamedRecords, second: NamedRecords, is_timed: bool = False, seed: int = 0
) -> PairedGain:
    """Compare a system with another on the graphs that both have, by AS too if `is_timed`.

    A system with several records of a graph, one a seed, counts with their mean.

    Raises:
        InputError: They have no graph in common.
    """
    records, other_records = _by_graph(first[1]), _by_graph(second[1])
    graphs = [graph for graph in records if graph in other_records]
    if not graphs:
        raise InputError("the two systems have no graph in common")
    gains = [
        (
            records[graph][0].task,
            _correct_share(records[graph]) - _correct_share(other_records[graph]),
        )
        for graph in graphs
    ]
    ratio = None
    if is_timed:
        scores, other_scores = log_scores(first[1]), log_scores(second[1])
        logs = [(t, scores[t] - other_scores[t]) for t in scores if t in other_scores]
        ratio = _exponential(bootstrap(logs, seed))
    won, lost = (sum(sign * gain > 0 for _, gain in gains) for sign in (1, -1))
    return PairedGain(first[0], second[0], *bootstrap(gains, seed), won, lost, ratio)


def _by_graph(records: Sequence[AnswerRecord]) -> dict[str, list[AnswerRecord]]:
    by_graph: dict[str, list[AnswerRecord]] = {}
    for record in records:
        by_graph.setdefault(record.graph, []).append(record)
    return by_graph


def _correct_share(records: Sequence[AnswerRecord]) -> float:
    return _mean([float(record.is_correct) for record in records])


def log_scores(records: Sequence[AnswerRecord]) -> dict[str, float]:
    """Return the logarithm of the AS of each task, over the graphs with a verdict."""
    by_task: dict[str, list[Score]] = {}
    for record in records:
        if record.verdict != "not judged":
            score = Score(record.status, record.smallest_t, record.speedup)  # type: ignore[arg-type]
            by_task.setdefault(record.task, []).append(score)
    return {task: log(aggregate(es_by_t(scores))) for task, scores in by_task.items()}


def bootstrap(values: Sequence[tuple[str, float]], seed: int = 0) -> FigureInterval:
    """Return the mean of values and its 95 % interval over the choice of their tasks."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    by_task: dict[str, list[float]] = {}
    for task, value in values:
        by_task.setdefault(task, []).append(value)
    tasks = list(by_task.values())
    means = sorted(
        _mean([value for part in draw.choices(tasks, k=len(tasks)) for value in part])
        for _ in range(NUM_RESAMPLES)
    )
    low, high = means[int(0.025 * NUM_RESAMPLES)], means[int(0.975 * NUM_RESAMPLES) - 1]
    return _mean([value for _, value in values]), low, high


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _exponential(figures: FigureInterval) -> FigureInterval:
    middle, low, high = figures
    return exp(middle), exp(low), exp(high)


def summary_table(summaries: Sequence[SystemSummary]) -> Table:
    """Return a table with a row for each system."""
    table = Table(
        "Tasks of evaluation, never learned from",
        (
            *("system", "graphs", "correct %", "95 % interval", "faster %", "AS", "its interval"),
            *("cheats", "flagged", "not judged"),
        ),
        note="correct: by the strict rules, at t = -5. Intervals are over tasks. flagged: correct, "
        "and to be read by a person.",
        least=("not judged", "graphs", "flagged", "its interval"),
    )  # fmt: skip
    for figures in summaries:
        score, low, high = figures.score or (None, None, None)
        table.rows.append((
            figures.system,
            str(figures.num_graphs),
            f"{100 * figures.correct:.1f}",
            f"{100 * figures.correct_low:.1f} – {100 * figures.correct_high:.1f}",
            "–" if figures.faster is None else f"{100 * figures.faster:.1f}",
            "–" if score is None else f"{score:.3f}",
            "–" if score is None else f"{low:.3f} – {high:.3f}",
            str(figures.findings),
            str(figures.flagged),
            str(figures.not_judged),
        ))  # fmt: skip
    return table


def gain_table(gains: Sequence[PairedGain]) -> Table:
    """Return a table with a row for each pair of systems."""
    columns = ("system", "beside", "correct, points more", "95 %", "won", "lost", "AS divided",
               "its 95 %")  # fmt: skip
    note = (
        "Won and lost: graphs on which the system is more often correct than the other, and less."
    )
    table = Table("Beside each other", columns, note=note)
    for gain in gains:
        ratio, low, high = gain.score_ratio or (None, None, None)
        table.rows.append((
            gain.system,
            gain.other,
            f"{100 * gain.gain:+.1f}",
            f"{100 * gain.low:+.1f} – {100 * gain.high:+.1f}",
            str(gain.won),
            str(gain.lost),
            "–" if ratio is None else f"{ratio:.2f}",
            "–" if ratio is None else f"{low:.2f} – {high:.2f}",
        ))  # fmt: skip
    return table
