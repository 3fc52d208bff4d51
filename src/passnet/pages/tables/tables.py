"""Tables as text, for the terminal and in Markdown, and the tables of a run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import geometric_mean

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from passnet.bench.groups import MARGIN, Group
from passnet.bench.in_nets import InNet
from passnet.bench.published import PublishedRun
from passnet.bench.scores import NO_SHARES, CandidateScore, is_correct, is_near
from passnet.core.terminal.counts import counted
from passnet.errors import InputError
from passnet.judge.desk.candidates import BASELINES
from passnet.judge.protocol.messages import plain_text
from passnet.judge.score.share_score import share_score
from passnet.judge.trial import MAX_TEXT, Trial
from passnet.pages.tables.cells import (
    NOTHING,
    bounds,
    failures_in_words,
    interval,
    number,
    percent,
)
from passnet.pages.tables.fitting import fitting_widths

NOTE_WIDTH = 100
"""Most letters of a line of a note on a terminal."""

MAX_KINDS = 12
"""Most kinds of failure that are listed."""


@dataclass(frozen=True)
class Table:
    """A table as text: a title, column heads, rows, and a note below."""

    title: str
    heads: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    note: str = ""

    least: tuple[str, ...] = ()
    """Heads of columns that a narrow terminal leaves out, those of least worth first. After them it
    leaves out columns from the right, and never the first.
    """

    def __post_init__(self) -> None:
        if any(len(row) != len(self.heads) for row in self.rows):
            raise InputError(f"a row of the table {self.title!r} does not fit its head")
        if not {*self.least} <= {*self.heads}:
            raise InputError(f"a column of least worth is none of the table {self.title!r}")


def total_table(scores: Sequence[CandidateScore], shares: Mapping[str, float] = NO_SHARES) -> Table:
    """Return a row for each candidate: AS with its interval, and the published columns.

    `shares` are those of the tasks in the time of nets; without any, there is no AS by share. The
    interval of S is left out where no candidate has S.
    """
    table = Table(
        "Total",
        (
            *("candidate", "AS", "95 % interval", "AS64", "its interval", "S", "roof %"),
            *(
                "AS pooled",
                "G-Mean",
                "cold",
                "Samp. CR %",
                "Sub. CR %",
                "CR64 %",
                "fast_1 %",
                "trials",
            ),
            "not ok",
        ),
        note="AS: geometric mean over tasks; its interval is over tasks and repeats. AS64: AS with "
        "float64 as what is right: a trial as near to it as eager torch counts as correct. S: 0.5 "
        "as fast as eager torch, 1 at the least time that the hardware allows; roof: this time as "
        "a share of the candidate's. G-Mean: speedup of correct trials; cold: the same with caches "
        "that other work has filled. CR: correct at t = -5; CR64: the same against float64. not "
        "ok: trials that failed, by status; unstable ones are in no score.",
        least=(
            *("its interval", "roof %", "cold", "fast_1 %", "CR64 %", "Sub. CR %", "AS pooled"),
            *("S", "AS64", "trials", "Samp. CR %"),
        ),
    )
    for score in scores:
        suite, columns = score.suite, score.suite.columns
        intervals = (score.intervals["both"], score.float64_intervals["both"])
        within, within_float64 = (bounds(each.low, each.high) for each in intervals)
        scored = (number(suite.score), within, number(suite.score_float64), within_float64)
        limits = (number(score.sol.score), percent(score.sol.roofline_share))
        means = (suite.score_pooled, columns.geomean_speedup, score.cold_speedup)
        speedups = (*limits, *map(number, means))
        ratios = (
            columns.sample_correct,
            columns.subgraph_correct,
            columns.float64_correct,
            columns.fast_1,
        )
        counts = (str(score.num_trials), failures_in_words(score.statuses))
        table.rows.append((score.candidate, *scored, *speedups, *map(percent, ratios), *counts))
    note = "Interval of S: over tasks and repeats."
    table = _with_column(table, "roof %", "S interval", map(sol_bounds, scores), note)
    by_share = [share_score(score.suite.tasks, shares) for score in scores]
    num_tasks = max((each.num_tasks for each in by_share if each), default=0)
    cells = (number(each.score if each else None) for each in by_share)
    note = f"AS by share: {num_tasks} tasks, weighted by their shares of the time of nets."
    return _with_column(table, "AS64", "AS by share", cells, note)


def _with_column(table: Table, before: str, head: str, cells: Iterable[str], note: str) -> Table:
    """Return a table with one more column and a note on it, if a candidate has a value there."""
    cells, at = list(cells), table.heads.index(before)
    if {*cells} <= {NOTHING}:
        return table
    rows = [(*row[:at], cell, *row[at:]) for row, cell in zip(table.rows, cells, strict=True)]
    heads = (*table.heads[:at], head, *table.heads[at:])
    least = (head, *table.least)
    return replace(table, heads=heads, rows=rows, note=f"{table.note} {note}", least=least)


def sol_bounds(score: CandidateScore) -> str:
    """Return the bounds of a candidate's S, over tasks and repeats."""
    both = score.sol.intervals.get("both")
    return bounds(both.low, both.high) if both else NOTHING


def task_overview(scores: Sequence[CandidateScore]) -> Table:
    """Return a row for each task: the AS of every candidate, AS64 if that differs, and S."""
    tasks = dict.fromkeys(task for score in scores for task in score.suite.tasks)
    return Table(
        "AS by task",
        ("task", *(score.candidate for score in scores)),
        [(task, *(_task_cell(score, task) for score in scores)) for task in tasks],
        note="In brackets AS64, where it differs from AS; after the slash S.",
        least=_baselines(score.candidate for score in scores),
    )


def _baselines(candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the candidates that ship with passnet, which tell least about a run."""
    return tuple(name for name in candidates if name.split("@")[0] in BASELINES)


def _task_cell(scored: CandidateScore, task: str) -> str:
    score = number(scored.suite.tasks.get(task))
    score_float64 = number(scored.suite.tasks_float64.get(task))
    both = score if score == score_float64 else f"{score} ({score_float64})"
    return f"{both} / {number(scored.sol.tasks[task], 2)}" if task in scored.sol.tasks else both


def group_table(by: str, groups: Sequence[Group]) -> Table:
    """Return a row for each group and candidate, with its wins and losses."""
    table = Table(
        f"By {by}",
        (
            *(by, "candidate", "trials", "G-Mean"),
            *("faster %", "slower %", "not correct %", "yet near %"),
        ),
        note=f"faster, slower: correct, with the whole 95 % interval of the speedup more than "
        f"{100 * MARGIN:.0f} % from 1. yet near: not correct, but no further from float64 than "
        "eager torch. Unstable trials are in none.",
        least=("yet near %", "trials"),
    )
    for group in groups:
        shares = (group.faster, group.slower, group.failed, group.failed_nearer)
        speedup = number(group.geomean_speedup)
        cells = (group.name, group.candidate, str(group.num_trials), speedup)
        table.rows.append((*cells, *map(percent, shares)))
    return table


def net_table(records: Sequence[InNet], candidate: str = "passes") -> Table:
    """Return a row for each pass folder of a candidate in each net."""
    speedups = [record.speedup for record in records if record.speedup]
    won = [record for record in records if record.speedup and record.is_won_on_task]
    kept = sum(record.is_won_in_net for record in won)
    mean = number(geometric_mean(speedups) if speedups else None)
    table = Table(
        f"{candidate} in the nets that tasks came from, over Inductor alone",
        (
            *("task", "net", "places", "on the task", "share %", "predicted", "in the net"),
            *("again", "status"),
        ),
        note=f"Of {len(won)} folders that are faster on their task, {kept} are in their net, with "
        f"the whole 95 % interval; the geometric mean of {len(speedups)} of {len(records)} nets is "
        f"{mean}, the others failed or were not timed. share: of the net's time at these places. "
        "predicted: by Amdahl's law; neither where these times exceed the net's. again: Inductor "
        "alone over itself.",
        least=("again", "places", "predicted", "share %", "on the task"),
    )
    for record in records:
        in_net = interval(record.speedup, record.low, record.high)
        cells = (
            *(record.task, record.net, str(record.num_matches), number(record.task_speedup, 2)),
            *(percent(record.share), number(record.predicted, 3), in_net, number(record.again)),
        )
        table.rows.append((*cells, record.status))
    return table


def task_tables(trials: Iterable[Trial]) -> list[Table]:
    """Return a table for each task: a row for each graph, a column for each candidate."""
    by_task: dict[str, dict[str, dict[str, Trial]]] = defaultdict(lambda: defaultdict(dict))
    candidates: dict[str, None] = {}
    for trial in trials:
        by_task[trial.task][trial.graph][trial.candidate] = trial
        candidates[trial.candidate] = None
    tables = []
    for task, graphs in by_task.items():
        rooflines = [trial.roofline for each in graphs.values() for trial in each.values()]
        known = ("T_sol ms",) if any(rooflines) else ()
        heads = ("graph", *known, "eager ms", *candidates)
        table = Table(task, heads, least=(*known, "eager ms", *_baselines(candidates)))
        for graph, by_candidate in graphs.items():
            limits = (trial.roofline for trial in by_candidate.values())
            sol_ms = [number(next((limit.ms for limit in limits if limit), None))][: len(known)]
            times_ms = (trial.reference_ms for trial in by_candidate.values())
            eager_ms = number(next((time_ms for time_ms in times_ms if time_ms), None))
            cells = [_cell(by_candidate.get(name)) for name in candidates]
            table.rows.append((graph.removeprefix(f"{task}-"), *sol_ms, eager_ms, *cells))
        tables.append(table)
    return tables


def _cell(trial: Trial | None) -> str:
    """Return a trial's speedup with its interval and smallest t, or its status."""
    if trial is None:
        return ""
    if trial.status != "ok" or trial.speedup is None:
        return trial.status
    level = "wrong values" if trial.smallest_t is None else f"t={trial.smallest_t}"
    if trial.smallest_t is not None and not is_correct(trial) and is_near(trial):
        level += ", near"
    return f"{trial.speedup:.2f} ({trial.speedup_low:.2f}–{trial.speedup_high:.2f}) {level}"


def published_table(published: PublishedRun) -> Table:
    """Return the total of scores that others published."""
    row = (published.name, number(published.score), str(len(published.tasks)))
    note = "AS: geometric mean over tasks. Nothing was measured here, so there is no interval."
    return Table("Published, not measured here", ("candidate", "AS", "tasks"), [row], note)


def failure_lines(trials: Iterable[Trial]) -> list[str]:
    """Return a line for each kind of failure: its count, and the first failure in words."""
    kinds: dict[tuple[str, str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.status != "ok" or trial.smallest_t is None:
            kinds[trial.candidate, trial.task, trial.status].append(trial)
    merged: dict[tuple[str, str, str], list[list[Trial]]] = defaultdict(list)
    for (candidate, task, status), failed in kinds.items():
        merged[candidate, status, failed[0].error or task].append(failed)
    lines = []
    for of_tasks in sorted(merged.values(), key=lambda of_tasks: -sum(map(len, of_tasks))):
        first, count = of_tasks[0][0], sum(map(len, of_tasks))
        name = "wrong values" if first.status == "ok" else first.status
        error = plain_text(first.error or "", MAX_TEXT)
        where = f"{plain_text(first.candidate, MAX_TEXT)} on {plain_text(first.task, MAX_TEXT)}"
        more = f" and {counted(len(of_tasks) - 1, 'more task')}" if len(of_tasks) > 1 else ""
        lines.append(f"{where}{more}: {count} × {name}: {error}")
    if len(lines) > MAX_KINDS:
        more = counted(len(lines) - MAX_KINDS, "more kind", "more kinds")
        lines[MAX_KINDS:] = [f"… and {more} of failure, see trials.jsonl"]
    return lines


def phase_table(trials: Iterable[Trial], wall_s: float) -> Table:
    """Return the judge's time by phase, each graph counted once.

    The sum exceeds `wall_s` if several tasks ran at a time or the run was resumed.
    """
    of_graphs: dict[tuple[str, str], float] = {}
    for trial in trials:
        for name, seconds in trial.phases_s.items():
            key = (trial.graph, name)
            of_graphs[key] = max(of_graphs.get(key, seconds), seconds)
    phases: dict[str, float] = defaultdict(float)
    for (_, name), seconds in of_graphs.items():
        phases[name] += seconds
    total = max(wall_s, sum(phases.values()))
    phases["rest"] = total - sum(phases.values())
    return Table(
        "Where the time went",
        ("phase", "seconds", "share %"),
        [
            (name, f"{seconds:.1f}", f"{100 * seconds / total:.0f}")
            for name, seconds in sorted(phases.items(), key=lambda phase: -phase[1])
        ],
    )


def print_table(console: Console, table: Table, hint: str = "") -> None:
    """Print a table to a terminal; the first column to the left, the others to the right.

    Columns that do not fit are left out, and named below the table, with a hint on how to see them.
    """
    rows = [[*map(_cell_text, row)] for row in (table.heads, *table.rows)]
    least = [table.heads.index(head) for head in table.least]
    widths = fitting_widths([*zip(*rows, strict=True)], least, console.width)
    printed = RichTable()
    for index, width in widths.items():
        side = "left" if index == 0 else "right"
        printed.add_column(Text(rows[0][index]), justify=side, overflow="fold", width=width)
    for row in rows[1:]:
        printed.add_row(*(Text(row[index]) for index in widths))
    hidden = [head for index, head in enumerate(rows[0]) if index not in widths]
    below = f"hidden: {', '.join(hidden)}{hint}" if hidden else ""
    if table.title:
        console.print(Text(_cell_text(table.title), "table.title"))
    console.print(printed)
    for line in filter(None, (_cell_text(table.note), below)):
        console.print(Text(line, "table.caption"), width=min(console.width, NOTE_WIDTH))


def _cell_text(text: str) -> str:
    """Return text for a terminal's table, without control characters."""
    return "".join(letter if letter.isprintable() or letter == "\n" else " " for letter in text)


def plain_markdown(text: str) -> str:
    """Return text for a line or a cell of a table in Markdown, without HTML, links and images."""
    escaped = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    return escaped.replace("](", "]\\(")


def markdown(tables: Sequence[Table]) -> str:
    """Return the tables as Markdown text."""
    parts = []
    for table in tables:
        heads = " | ".join(map(plain_markdown, table.heads))
        rule = "|" + "---|" * len(table.heads)
        lines = [f"## {plain_markdown(table.title)}", "", f"| {heads} |", rule]
        lines += [f"| {' | '.join(map(plain_markdown, row))} |" for row in table.rows]
        if table.note:
            lines += ["", plain_markdown(table.note)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
