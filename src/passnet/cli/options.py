"""Options and arguments that several commands share; `main` adds the default of each to its help.

Commands import this module as `opt`, so that `@opt.json` stands beside their own options.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from passnet.bench.run import RunSettings
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.suite.suite import Suite

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)
POSITIVE = click.FloatRange(min=0, min_open=True)
COUNT = click.IntRange(min=1)
COUNT_OR_ZERO = click.IntRange(min=0)
KINDS = ("classical", "fusible", "single")
DTYPES = ("float32", "float16", "bfloat16")


def _opened_by(function: str) -> Callable[..., Any]:
    """A callback: what "module:function", imported on use, gives for the word of an option."""

    def callback(_: click.Context, __: click.Parameter, word: str | None) -> Any:
        module, name = function.split(":")
        return None if word is None else getattr(import_module(module), name)(word)

    return callback


open_suite = _opened_by("passnet.suite.suite:load_suite")


def _num_processes(_: click.Context, __: click.Parameter, jobs: int) -> int:
    return jobs or len(os.sched_getaffinity(0))


def out(content: str) -> Callable[[Command], Command]:
    """A required `--out`, described by what is written there."""
    return click.option("--out", required=True, type=PATH, help=f"{content} to write.")


def jobs(unit: str, default: int = 0) -> Callable[[Command], Command]:
    """A `--jobs`, described by what is worked on at a time; the command gets a number above 0."""
    return click.option("--jobs", default=default, type=COUNT_OR_ZERO, callback=_num_processes,
                        help=f"{unit} to work on at a time; 0 is one for each core.")  # fmt: skip


def rules(default: str) -> Callable[[Command], Command]:
    """A `--rules` with a default."""
    return click.option("--rules", default=default, type=click.Choice(["open", "strict"]),
                        help="What replacements may call: any torch op (open), or only kernels of "
                        "their own (strict).")  # fmt: skip


folder = click.argument("folder", type=PATH)
folders = click.argument("folders", nargs=-1, required=True, type=PATH)
paths = click.argument("paths", nargs=-1, required=True, type=PATH)
json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
resume = click.option("--resume", is_flag=True,
                      help="Continue an interrupted run; what it finished is kept.")  # fmt: skip
executor = click.option("--executor", default="local", type=click.Choice(["local", "ray"]),
                        callback=_opened_by("passnet.jobs.executors:executor"),
                        help="Work in processes of this machine, or on a Ray cluster.")  # fmt: skip
task = click.option("--task", "tasks", multiple=True, metavar="NAME",
                    help="Only this task of the suite (repeatable).")  # fmt: skip
held_out = click.option("--held-out", callback=open_suite, metavar="SUITE",
                        help="A suite with other shapes of the same tasks; passes that are wrong "
                        "on those are rejected.")  # fmt: skip
device = click.option("--device", default="cpu", type=click.Choice(["cpu", "cuda"]),
                      help="The device that graphs run on.")  # fmt: skip
threads = click.option("--threads", default=1, type=COUNT,
                       help="Threads of the reference and of each candidate.")  # fmt: skip
sandbox = click.option("--sandbox", default="auto",
                       type=click.Choice(["auto", "bubblewrap", "unshare", "none"]),
                       callback=_opened_by("passnet.judge.processes.sandbox:find_sandbox"),
                       help="What confines candidate code; auto takes the best that works here, "
                       "or else none.")  # fmt: skip
self_tolerance = click.option(
    "--self-tolerance", default=0.1, type=POSITIVE,
    help="The share by which times of the reference may differ from each other, and of its time "
    "that it may wait for a processor, before a measurement is repeated.")  # fmt: skip


def _with_tasks(suite_parameter: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A parameter that names a suite, and `--task`: a command gets `suite` with those tasks."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @suite_parameter
        @task
        @functools.wraps(command)
        def with_tasks(suite: Suite, tasks: tuple[str, ...], **options: Any) -> Any:
            from passnet.suite.suite import only_tasks

            return command(suite=only_tasks(suite, tasks) if tasks else suite, **options)

        return with_tasks

    return add


suite = _with_tasks(
    click.option("--suite", default="demo", callback=open_suite, metavar="SUITE",
                 help="The suite: the name of a shipped one, a Parquet file, or a folder of "
                 "graphs."))  # fmt: skip
suite_argument = _with_tasks(click.argument("suite", default="demo", callback=open_suite))


def judging(rules_default: str, seed: str) -> Callable[[Command], Command]:
    """The options that `run_settings` makes settings of; `seed` says what `--seed` is a seed of."""
    seconds = click.option("--seconds", default=0.4, type=POSITIVE,
                           help="Seconds to measure each candidate on each graph.")  # fmt: skip
    seeded = click.option("--seed", default=0, type=COUNT_OR_ZERO, help=f"Seed of {seed}.")
    options = (device, threads, seconds, seeded, self_tolerance, sandbox, rules(rules_default))

    def add(command: Command) -> Command:
        return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)

    return add


def run_settings(sandbox: Sandbox, options: dict[str, Any], **judge: Any) -> RunSettings:
    """The settings of a run from the options of `judging`, and more of its judge."""
    from passnet.bench.run import RunSettings
    from passnet.judge.settings import JudgeSettings, TimingPlan

    judge |= picked(options, ("device", "seed", "self_tolerance", "rules"))
    settings = JudgeSettings(timing=TimingPlan(seconds=options["seconds"]), **judge)
    return RunSettings(settings, options["threads"], sandbox.name)


def picked(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Some options by their names, which are those of fields that they are for."""
    return {name: options[name] for name in names}
