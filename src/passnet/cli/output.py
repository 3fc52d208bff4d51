"""What commands print, and what a run leaves beside its trials."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from passnet.bench.scores import CandidateScore
    from passnet.judge.trial import Trial
    from passnet.report.tables import Table

TABLE_WIDTH = 150
"""Columns of a table that goes to a file or a pipe."""


def report(out: Path, trials: list[Trial], as_json: bool, brief: bool, wall_s: float) -> None:
    """Write scores, tables and the figure of a run, and print them."""
    from passnet.bench.files import FIGURE_FILE, RUN_FILE, SCORES_FILE, TABLES_FILE, TRIALS_FILE
    from passnet.bench.scores import as_json as to_json
    from passnet.report.results import write_results
    from passnet.report.tables import phase_table
    from passnet.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY

    scores = write_results(out)
    if as_json:
        print_json(to_json(scores, SEVERE_PENALTY, SLOWDOWN_PENALTY))
        return
    if not brief:
        print_tasks(trials)
    print_totals(scores)
    print_failures(trials)
    print_tables([phase_table(trials, wall_s)])
    written = (RUN_FILE, TRIALS_FILE, SCORES_FILE, TABLES_FILE, FIGURE_FILE)
    click.echo(f"written to {out}: {', '.join(written)}")


def print_tasks(trials: list[Trial]) -> None:
    """A table a task."""
    from passnet.report.tables import task_tables

    print_tables(task_tables(trials))


def print_totals(scores: list[CandidateScore]) -> None:
    """The tables over all tasks."""
    from passnet.report.tables import task_overview, total_table

    print_tables([task_overview(scores), total_table(scores)])


def print_failures(trials: list[Trial]) -> None:
    """A line for each kind of failure."""
    from passnet.report.tables import failure_lines

    for line in failure_lines(trials):
        click.echo(line)


def print_tables(tables: list[Table]) -> None:
    """Tables, as wide as the terminal, or as `TABLE_WIDTH`."""
    from rich.console import Console

    from passnet.report.tables import print_table

    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    for table in tables:
        print_table(console, table)


def print_json(value: Any) -> None:
    """A value as indented JSON."""
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")
