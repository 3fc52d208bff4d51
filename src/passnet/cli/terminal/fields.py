"""Options that several commands share. Commands import this module as `opt` and name them as
defaults of fields: `json: bool = opt.shared("json")`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from passnet.cli.terminal import completion
from passnet.cli.terminal.parser import (
    PATH,
    OptionPart,
    argument,
    command,
    command_group,
    field,
    field_part,
    fields_of,
    part,
)
from passnet.core.jobs.run_plan import seconds_of
from passnet.data.dataset.licences import CHOICES

if TYPE_CHECKING:
    from passnet.agent.settings import AuthorName
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite

__all__ = [
    "PATH",
    "OptionPart",
    "argument",
    "command",
    "completion",
    "command_group",
    "field",
    "fields_of",
    "part",
]

KINDS = ("classical", "fusible", "single")
DTYPES = ("float32", "float16", "bfloat16")

JUDGING = (
    "judge.device",
    "num_threads",
    "judge.timing.seconds",
    "judge.seed",
    "judge.input_seed",
    "judge.self_tolerance",
    "judge.rules",
    "judge.strides",
)
"""Fields of `RunSettings` that are options of all commands that judge."""

LIMITS = ("judge.limits.memory_mib", "judge.compile_timeout_s", "judge.call_timeout_s")
"""Fields of `RunSettings` that limit candidates."""


def open_suite(name: str) -> Suite:
    from passnet.judge.suite.suite import load_suite

    return load_suite(name)


def _open_suites(names: tuple[str, ...]) -> tuple[Suite, ...]:
    return tuple(map(open_suite, names))


def _find_sandbox(name: str) -> Sandbox:
    from passnet.judge.processes.sandbox import find_sandbox

    return find_sandbox(name)


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Options that several commands have and no settings."""

    json: bool = False
    """Print the result as JSON."""

    wide: bool = False
    """Print all columns of tables, also those that do not fit the terminal."""

    fail_under: float | None = field(None, metavar="AS")
    """Exit with 1 if a candidate's AS is below this; baselines count only if there is no other."""

    suite: str = field("demo", metavar="SUITE", complete=completion.suites)
    """Use this suite: a shipped one by name, a Parquet file, or a folder of graphs, which is ./NAME
    if a shipped one has its name.
    """

    tasks: tuple[str, ...] = field((), option="task", metavar="NAME", complete=completion.tasks)
    """Use only this task of the suite."""

    suites: tuple[Suite, ...] = field(
        (),
        option="suite",
        metavar="SUITE",
        type=click.STRING,
        convert=_open_suites,
        complete=completion.suites,
    )
    """Look up tasks in this suite too, which does not ship with passnet."""

    held_out: Suite | None = field(
        None,
        metavar="SUITE",
        type=click.STRING,
        convert=open_suite,
        complete=completion.suites,
    )
    """Reject passes that are wrong on this suite, which has other shapes of the same tasks."""

    evaluation: tuple[str, ...] = field(
        (), option="eval", metavar="SUITE", complete=completion.suites
    )
    """Keep training apart from this suite, which is for evaluation."""

    sandbox: Sandbox = field(
        "auto", choices=("auto", "bubblewrap", "unshare", "none"), convert=_find_sandbox
    )
    """Run candidate code in this sandbox; auto takes the best that works here, if any."""

    threads: int = field(1, most=1024)
    """Run the reference and each candidate with this many threads."""

    seed: int = 0
    """Seed random choices with this number."""

    source_licenses: tuple[str, ...] = field(
        (), option="source-license", metavar="LICENCE", choices=CHOICES
    )
    """Take only rows whose nets are all of libraries under this licence; see docs/licences.md."""

    budget: float | None = field(None, type=str, convert=seconds_of)
    """Stop after this time, such as 90s, 10m or 1h; --resume goes on."""

    figure: Path | None = None
    """Draw the figure in this file, NAME.svg or NAME.png."""

    leaderboard: Path = Path("leaderboard")
    """Use the leaderboard in this folder."""

    all: bool = False
    """Include passes that were tried in vain, not only those that win."""

    page: Path | None = None
    """Write the result to this file as a page of Markdown, with its figure beside it."""

    turns: int | None = None
    """End an attempt after this many answers of the LLM (50 by default), or evaluations of the
    search (12 by default).
    """


def options_given() -> set[str]:
    """Return the options on the command line."""
    context = click.get_current_context()
    return {
        parameter.opts[0]
        for parameter in context.command.params
        if isinstance(parameter, click.Option)
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    }


def shared(name: str) -> Any:
    """Return a field with an option of `Shared`."""
    return part(lambda _, __: field_part(Shared, name))


def suite(is_argument: bool = False, unless: str | None = None) -> Any:
    """Return a field for a suite, named by `--suite` or an argument, with the tasks of `--task`.

    It is not opened, and None, with a value of the option `unless`.
    """

    def make(_: type, __: str) -> OptionPart:
        words = (click.Argument(["suite"], default="demo", shell_complete=completion.suites),)
        names = words if is_argument else field_part(Shared, "suite").params
        tasks = field_part(Shared, "tasks")

        def value(values: Mapping[str, Any]) -> Suite | None:
            if unless is not None and values[unless] is not None:
                return None
            from passnet.judge.suite.suite import only_tasks

            whole, task_names = open_suite(values["suite"]), tasks.value(values)
            return only_tasks(whole, task_names) if task_names else whole

        return OptionPart((*names, *tasks.params), value)

    return part(make)


def plan(*fields: str, jobs: int = 0) -> Any:
    """Return a field for a `RunPlan`; some of its fields are options."""
    return fields_of("passnet.core.jobs.run_plan:RunPlan", *fields, num_workers=jobs)


def judging(*more: str, **judge: Any) -> Any:
    """Return a field for `RunSettings` with the options `JUDGING` and more; `judge` are defaults of
    the judge's settings that differ from its own.
    """
    return judging_of(*JUDGING, *more, **judge)


def judging_of(*paths: str, **judge: Any) -> Any:
    """Return a field for `RunSettings`; only some of its fields are options."""

    def defaults() -> RunSettings:
        from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan

        return RunSettings(JudgeSettings(timing=TimingPlan(seconds=0.4), **judge))

    return fields_of(defaults, *paths)


def job_limits(seconds: float) -> Any:
    """Return a field for `JobLimits` with the options `--timeout` and `--memory`."""
    limits = "passnet.core.jobs.process:JobLimits"
    return fields_of(limits, "seconds", "memory_mib", seconds=seconds)


LLM = (
    "base_urls",
    "temperature",
    "max_output_tokens",
    "emulates_tools",
    "num_retries",
    "timeout_s",
    "price",
)
"""Fields of `LlmSettings` that are options of all commands that ask an LLM over many turns."""


def llm_settings(*fields: str) -> Any:
    """Return a field for `LlmSettings` without a name; its options are `LLM`, or other fields."""
    return fields_of("passnet.agent.settings:LlmSettings", *(fields or LLM), name="")


def agent_settings(*fields: str) -> Any:
    """Return a field for `AgentSettings` without an author; `--call` and `--attempts` are options,
    and so are `fields`.
    """
    settings = "passnet.agent.settings:AgentSettings"
    return fields_of(settings, "call", "num_attempts", *fields, author="llm")


def attempt_limits() -> Any:
    """Return a field for `AgentLimits` without turns, whose default depends on the author."""
    return fields_of("passnet.agent.settings:AgentLimits", "tokens", "seconds", "cost")


def turns_of(turns: int | None, author: AuthorName) -> int:
    """Return the most turns of an attempt by an author."""
    from passnet.agent.settings import SEARCH_TURNS, AgentLimits

    return turns or (SEARCH_TURNS if author == "search" else AgentLimits.turns)
