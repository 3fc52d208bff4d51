"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from passnet.suite.suite import Suite

POSITIVE = click.FloatRange(min=0, min_open=True)

suite_option = click.option(
    "--suite",
    "suite_name",
    default="demo",
    show_default=True,
    help="A shipped suite, a Parquet file, or a folder of graphs.",
)
task_option = click.option("--task", "tasks", multiple=True, help="Only this task (repeatable).")

self_tolerance_option = click.option(
    "--self-tolerance",
    default=0.1,
    type=POSITIVE,
    show_default=True,
    help="How far the reference may be from itself, and be held up waiting for a processor, before "
    "a measurement is repeated.",
)


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
    from passnet.suite.suite import load_suite, only_tasks

    suite = load_suite(name)
    return only_tasks(suite, tasks) if tasks else suite
