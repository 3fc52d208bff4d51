"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.dataset.suite import Suite

POSITIVE = click.FloatRange(min=0, min_open=True)

suite_option = click.option(
    "--suite",
    "suite_name",
    default="demo",
    show_default=True,
    help="A shipped suite, a Parquet file, or a folder of graphs.",
)
task_option = click.option("--task", "tasks", multiple=True, help="Only this task (repeatable).")


def cores(_: click.Context, __: click.Parameter, jobs: int) -> int:
    """The number of processes of a `--jobs` option, of which 0 is one a core."""
    import os

    return jobs or len(os.sched_getaffinity(0))


jobs_option = click.option(
    "--jobs",
    default=0,
    type=click.IntRange(min=0),
    callback=cores,
    help="Processes at a time; 0 is one a core.",
)


def open_suite(name: str, tasks: tuple[str, ...]) -> Suite:
    """The suite of a name or path, all of it or some of its tasks."""
    from dataclasses import replace

    from passnet.dataset.suite import load_suite, make_suite

    suite = load_suite(name)
    if not tasks:
        return suite
    known = [task.name for task in suite.tasks]
    for task in tasks:
        if task not in known:
            raise InputError(f"suite {suite.name} has no task {task!r}; it has {', '.join(known)}")
    graphs = [item for task in suite.tasks if task.name in tasks for item in task.graphs]
    return replace(make_suite(suite.name, graphs), notes=suite.notes)
