"""Tables of a run: one a task, one of all tasks, one in total; for the terminal and in Markdown."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable

from passnet.bench.groups import MARGIN, Group
from passnet.bench.scores import CandidateScore
from passnet.judge.trial import Trial


@dataclass(frozen=True)
class Table:
    """A table as text: a title, column heads, rows, and a note below."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    note: str = ""


def total_table(scores: Sequence[CandidateScore]) -> Table:
    """One row a candidate: AS with its interval, and the columns of the published table."""
    table = Table(
        "Total",
        ("candidate", "AS", "95 % interval", "AS pooled", "G-Mean", "Samp. CR %", "Sub. CR %",
         "fast_1 %", "trials", "not ok"),
        note="AS: geometric mean over tasks; its interval is over tasks and repeats. CR: correct "
        "at t = -5. not ok: trials that failed, by status; unstable ones are in no score.",
    )  # fmt: skip
    for item in scores:
        columns = item.suite.columns
        interval = item.intervals["both"]
        failed = {name: count for name, count in item.statuses.items() if name != "ok"}
        table.rows.append(
            (
                item.candidate,
                f"{item.suite.score:.3f}",
                f"{interval.low:.3f} – {interval.high:.3f}",
                f"{item.suite.score_pooled:.3f}",
                _number(columns.geomean_speedup),
                f"{100 * columns.sample_correct:.1f}",
                f"{100 * columns.subgraph_correct:.1f}",
                f"{100 * columns.fast_1:.1f}",
                str(item.num_trials),
                ", ".join(f"{count} {name}" for name, count in failed.items()) or "–",
            )
        )
    return table


def task_overview(scores: Sequence[CandidateScore]) -> Table:
    """One row a task: the AS of every candidate."""
    tasks = list(dict.fromkeys(task for item in scores for task in item.suite.tasks))
    table = Table("AS by task", ("task", *(item.candidate for item in scores)))
    for task in tasks:
        values = [item.suite.tasks.get(task) for item in scores]
        table.rows.append((task, *(_number(value) for value in values)))
    return table


def group_table(by: str, groups: Sequence[Group]) -> Table:
    """One row a group and candidate: on what it wins, and on what it loses."""
    table = Table(
        f"By {by}",
        (by, "candidate", "trials", "G-Mean", "faster %", "slower %", "not correct %",
         "yet near %"),
        note=f"faster, slower: correct, with the whole 95 % interval of the speedup more than "
        f"{100 * MARGIN:.0f} % from 1. yet near: not correct, but no further from float64 than "
        "eager torch. Unstable trials are in none.",
    )  # fmt: skip
    for item in groups:
        shares = (item.faster, item.slower, item.failed, item.failed_nearer)
        cells = (f"{100 * share:.1f}" for share in shares)
        table.rows.append(
            (item.name, item.candidate, str(item.num_trials), _number(item.geomean_speedup), *cells)
        )
    return table


def task_tables(trials: Iterable[Trial]) -> list[Table]:
    """One table a task: a row a graph, a column a candidate, a cell a trial."""
    by_task: dict[str, dict[str, dict[str, Trial]]] = defaultdict(lambda: defaultdict(dict))
    candidates: dict[str, None] = {}
    for trial in trials:
        by_task[trial.task][trial.graph][trial.candidate] = trial
        candidates[trial.candidate] = None
    tables = []
    for task, graphs in by_task.items():
        table = Table(task, ("graph", "eager ms", *candidates))
        for graph, by_candidate in graphs.items():
            known = [item.reference_ms for item in by_candidate.values() if item.reference_ms]
            cells = [_cell(by_candidate.get(name)) for name in candidates]
            name = graph.removeprefix(f"{task}-")
            table.rows.append((name, f"{known[0]:.3f}" if known else "–", *cells))
        tables.append(table)
    return tables


def _cell(trial: Trial | None) -> str:
    """Speedup with its interval and the smallest t, or how the trial ended."""
    if trial is None:
        return ""
    if trial.status != "ok" or trial.speedup is None:
        return trial.status
    level = "wrong values" if trial.smallest_t is None else f"t={trial.smallest_t}"
    return f"{trial.speedup:.2f} ({trial.speedup_low:.2f}–{trial.speedup_high:.2f}) {level}"


def failure_lines(trials: Iterable[Trial], limit: int = 12) -> list[str]:
    """One line for each kind of failure: how often, and the first in words."""
    groups: Counter[tuple[str, str, str]] = Counter()
    first: dict[tuple[str, str, str], Trial] = {}
    for trial in trials:
        if trial.status != "ok" or trial.smallest_t is None:
            key = (trial.candidate, trial.task, trial.status)
            groups[key] += 1
            first.setdefault(key, trial)
    lines = []
    for key, count in groups.most_common(limit):
        candidate, task, status = key
        what = "wrong values" if status == "ok" else status
        text = first[key].error or ""
        lines.append(f"{candidate} on {task}: {count} × {what}: {text}")
    if len(groups) > limit:
        lines.append(f"… and {len(groups) - limit} more kinds of failure, see trials.jsonl")
    return lines


def phase_table(trials: Iterable[Trial], wall_s: float) -> Table:
    """Where the judge's time went, each graph counted once; more than `wall_s` where several tasks
    were worked on at a time, or the run was resumed.
    """
    phases: dict[str, float] = defaultdict(float)
    seen: dict[str, dict[str, float]] = {}
    for trial in trials:
        for name, seconds in trial.phases_s.items():
            seen.setdefault(trial.graph, {}).setdefault(name, seconds)
            seen[trial.graph][name] = max(seen[trial.graph][name], seconds)
    for parts in seen.values():
        for name, seconds in parts.items():
            phases[name] += seconds
    total = max(wall_s, sum(phases.values()))
    phases["start and rest"] = total - sum(phases.values())
    table = Table("Where the time went", ("phase", "seconds", "share %"))
    for name, seconds in sorted(phases.items(), key=lambda item: -item[1]):
        table.rows.append((name, f"{seconds:.1f}", f"{100 * seconds / total:.0f}"))
    return table


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def print_table(console: Console, table: Table) -> None:
    """Print a table to a terminal; the first column to the left, the others to the right."""
    shown = RichTable(title=table.title, title_justify="left", caption=table.note or None,
                      caption_justify="left")  # fmt: skip
    for index, head in enumerate(table.heads):
        shown.add_column(head, justify="left" if index == 0 else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)


def markdown(tables: Sequence[Table]) -> str:
    """The tables as Markdown text."""
    parts = []
    for table in tables:
        lines = [f"## {table.title}", "", "| " + " | ".join(table.heads) + " |"]
        lines.append("|" + "---|" * len(table.heads))
        lines += ["| " + " | ".join(row) + " |" for row in table.rows]
        if table.note:
            lines += ["", table.note]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
