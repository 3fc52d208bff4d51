"""Kinds of options, and those that several commands share; `main` adds the default of each to its
help. Commands import this module as `opt`, so that `@opt.json` stands beside their own options.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

if TYPE_CHECKING:
    from passnet.agent.settings import AgentLimits, AuthorName, LlmSettings
    from passnet.core.jobs.run_plan import RunShard
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator: TypeAlias = Callable[[Command], Command]

PATH = click.Path(path_type=Path)
KINDS = ("classical", "fusible", "single")
DTYPES = ("float32", "float16", "bfloat16")


def option(name: str, text: str, parameter: str = "", **settings: Any) -> Decorator:
    """An option with its help, for a parameter of its name or of another one."""
    return click.option(*filter(None, (name, parameter)), help=text, **settings)


def choice(name: str, words: Sequence[str], text: str, *args: str, **settings: Any) -> Decorator:
    """An option that takes one of some words."""
    return option(name, text, *args, type=click.Choice(words), **settings)


MAX_WHOLE = 2**31 - 1
"""Largest whole number of an option; every seed, count and size in MiB that libraries take fits."""

MAX_REAL = 1e9
"""Largest real number of an option; as seconds these are 31 years, which clocks can wait for."""


class FiniteRange(click.FloatRange):
    """Real numbers of a range, up to `MAX_REAL`; nan, which compares with nothing, is none."""

    def __init__(self, low: float = 0, high: float = MAX_REAL, **ends: bool) -> None:
        super().__init__(low, high, **ends)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number.

        Raises:
            click.BadParameter: it is none, or outside of the range.
        """
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


flag = functools.partial(option, is_flag=True)
path = functools.partial(option, type=PATH)
count = functools.partial(option, type=click.IntRange(1, MAX_WHOLE))
number = functools.partial(option, type=click.IntRange(0, MAX_WHOLE))
amount = functools.partial(option, type=FiniteRange(min_open=True))
least = functools.partial(option, type=FiniteRange())
share = functools.partial(option, type=FiniteRange(high=1, max_open=True))
suites = functools.partial(option, multiple=True, metavar="SUITE")


MAX_JOBS = 1024
"""Most that is worked on at a time: each takes a process of its own."""


def _opened_by(function: str) -> Callable[..., Any]:
    """A callback: what "module:function", imported on use, gives for the word of an option."""

    def callback(_: click.Context, __: click.Parameter, word: str | None) -> Any:
        module, name = function.split(":")
        return None if word is None else getattr(import_module(module), name)(word)

    return callback


open_suite = _opened_by("passnet.judge.suite.suite:load_suite")


def _num_processes(_: click.Context, __: click.Parameter, jobs: int) -> int:
    return jobs or len(os.sched_getaffinity(0))


def out(content: str) -> Decorator:
    """A required `--out`, described by what is written there."""
    return path("--out", f"{content} to write.", required=True)


def jobs(unit: str, default: int = 0) -> Decorator:
    """A `--jobs`, described by what is worked on at a time; the command gets a number above 0."""
    text = f"{unit} to work on at a time; 0 is one for each core."
    kind = click.IntRange(0, MAX_JOBS)
    return option("--jobs", text, type=kind, default=default, callback=_num_processes)


def shard_callback(_: click.Context, __: click.Parameter, text: str) -> RunShard:
    """The part of a run that an option names.

    Raises:
        InputError: it names none.
    """
    from passnet.core.jobs.run_plan import shard_of

    return shard_of(text)


def shard(items: str) -> Decorator:
    """A `--shard`, described by the items of which a part is worked on."""
    text = f"Work only on this part of the {items}, such as 2/8; --with puts parts together."
    return option("--shard", text, metavar="NUMBER/TOTAL", default="1/1", callback=shard_callback)


def parts(run: str) -> Decorator:
    """A `--with`, described by the kind of run of which the folders are parts."""
    text = f"A folder of another part of the same {run}; what it has done is taken over"
    return path("--with", f"{text} (repeatable).", "taken", multiple=True)


def rules(default: str) -> Decorator:
    """A `--rules` with a default."""
    return choice("--rules", ["open", "strict"], "What replacements may call: any torch op (open), "
                  "or only kernels of their own (strict).", default=default)  # fmt: skip


strides = choice("--strides", ["same", "any"], "The memory order of outputs: the same as eager "
                 "torch's, or any, as in the published benchmark.", default="same")  # fmt: skip
folder = click.argument("folder", type=PATH)
folders = click.argument("folders", nargs=-1, required=True, type=PATH)
paths = click.argument("paths", nargs=-1, required=True, type=PATH)
json = flag("--json", "Print the result as JSON.", "as_json")
fail_under = amount("--fail-under", "Exit with 1 if a candidate has an AS below this; baselines "
                    "count only where there is nothing else.", metavar="AS")  # fmt: skip
resume = flag("--resume", "Continue an interrupted run; what it finished is kept.")
_executor = functools.partial(
    choice, "--executor", ["local", "ray"],
    "Work in processes on this machine, or on a Ray cluster.", default="local",
)  # fmt: skip
executor = _executor(callback=_opened_by("passnet.core.jobs.executors:executor"))
executor_name = _executor()


def actors(command: Any) -> Any:
    """`--executor` and `--jobs`, which the command gets as `num_actors`: how many actors of a Ray
    cluster work, None for this process alone.
    """

    def number(context: click.Context, parameter: click.Parameter, jobs: int) -> int | None:
        if context.params.pop("executor") == "ray":
            return _num_processes(context, parameter, jobs)
        if jobs > 1:
            raise click.UsageError("--jobs goes with --executor ray; or divide the work by --shard")
        return None

    text = "With --executor ray: actors that work at a time; 0 is one for each core."
    kind = click.IntRange(0, MAX_JOBS)
    count = option("--jobs", text, "num_actors", type=kind, default=0, callback=number)
    return _executor(is_eager=True)(count(command))


task = option("--task", "Only this task of the suite (repeatable).", "tasks", multiple=True,
              metavar="NAME")  # fmt: skip
held_out = option("--held-out", "A suite with other shapes of the same tasks; passes that are "
                  "wrong on those are rejected.", callback=open_suite, metavar="SUITE")  # fmt: skip
device = choice("--device", ["cpu", "cuda"], "The device that graphs run on.", default="cpu")
threads = count("--threads", "Threads of the reference and of each candidate.", default=1,
                type=click.IntRange(1, MAX_JOBS))  # fmt: skip
sandbox = choice("--sandbox", ["auto", "bubblewrap", "unshare", "none"], "What confines candidate "
                 "code; auto takes the best that works here, if any does.", default="auto",
                 callback=_opened_by("passnet.judge.processes.sandbox:find_sandbox"))  # fmt: skip
self_tolerance = amount("--self-tolerance", "How noisy a measurement may be before it is repeated: "
                        "the relative difference between timings of the reference.",
                        default=0.1)  # fmt: skip


def _with_tasks(suite_parameter: Decorator) -> Decorator:
    """A parameter that names a suite, and `--task`: a command gets `suite` with those tasks."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @suite_parameter
        @task
        @functools.wraps(command)
        def with_tasks(suite: Suite, tasks: tuple[str, ...], **options: Any) -> Any:
            from passnet.judge.suite.suite import only_tasks

            return command(suite=only_tasks(suite, tasks) if tasks else suite, **options)

        return with_tasks

    return add


suite = _with_tasks(
    option("--suite", "The name of a shipped suite, a Parquet file, or a folder of graphs.",
           default="demo", callback=open_suite, metavar="SUITE"))  # fmt: skip
suite_argument = _with_tasks(click.argument("suite", default="demo", callback=open_suite))


def question_limits(command: Command) -> Command:
    """`--timeout` and `--memory` of a question to a dataset: a command gets `limits`."""
    from passnet.core.jobs.process import JobLimits

    @amount("--timeout", "The most seconds for a question to the dataset.", default=120.0)
    @count("--memory", "The most memory for a question to the dataset, in MiB.", default=8192)
    @functools.wraps(command)
    def with_limits(timeout: float, memory: int, **options: Any) -> Any:
        return command(limits=JobLimits(timeout, memory), **options)

    return with_limits


def judging(rules_default: str, seed: str) -> Decorator:
    """The options that `run_settings` makes settings of; `seed` says what `--seed` is a seed of."""
    seconds = amount("--seconds", "Seconds to measure each candidate on each graph.", default=0.4)
    seeded = number("--seed", f"Seed of {seed}.", default=0)
    options = (
        device, threads, seconds, seeded, self_tolerance, sandbox, rules(rules_default), strides
    )  # fmt: skip

    def add(command: Command) -> Command:
        return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)

    return add


def run_settings(sandbox: Sandbox, options: dict[str, Any], **judge: Any) -> RunSettings:
    """The settings of a run from the options of `judging`, and more of its judge."""
    from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan

    judge |= picked(options, ("device", "seed", "self_tolerance", "rules", "strides"))
    settings = JudgeSettings(timing=TimingPlan(seconds=options["seconds"]), **judge)
    return RunSettings(settings, options["threads"], sandbox.name)


def llm(command: Command) -> Command:
    """The options that `llm_settings` makes settings of, and those of `attempt_limits`."""
    options = (
        option("--base-url", "The OpenAI-compatible endpoint to ask, if not the provider's own.",
               metavar="URL"),
        least("--temperature", "The sampling temperature; the provider's default if not given."),
        count("--max-output-tokens",
              "The most tokens of one answer; the provider's default if not given."),
        flag("--emulate-tools", "Describe the tools in the text, for endpoints without tool "
             "calls.", "emulates_tools"),
        number("--retries", "How often a failed request to the llm is repeated.", "num_retries",
               default=3),
        count("--answer-timeout", "The most seconds to wait for an answer of the llm, before the "
              "request counts as failed.", "timeout_s", default=600),
        count("--turns", "The most answers of an llm, 50 if not given, or evaluations by the "
              "search, 12 if not given."),
        count("--tokens", "The most tokens of an attempt, in and out; no limit if not given."),
        count("--time", "The most seconds of an attempt; no limit if not given.", "max_seconds"),
        amount("--cost", "The most US dollars of an attempt; no limit if not given."),
        option("--price", "The price in US dollars of a million tokens of input, and of output, "
               "where Inspect does not know it.", nargs=2, type=FiniteRange()),
        count("--attempts", "The number of attempts at each task.", "num_attempts", default=1),
        option("--jobs", "Attempts of an llm to run at a time; only one measures at a time.",
               type=click.IntRange(1, MAX_JOBS), default=1),
    )  # fmt: skip
    return functools.reduce(lambda wrapped, option: option(wrapped), reversed(options), command)


def llm_settings(name: str, options: dict[str, Any]) -> LlmSettings:
    """Which llm to ask, and how, from the options of `llm`."""
    from passnet.agent.settings import LlmSettings

    names = ("base_url", "temperature", "max_output_tokens", "num_retries", "timeout_s", "price",
             "emulates_tools")  # fmt: skip
    return LlmSettings(name, **picked(options, names))


def attempt_limits(options: dict[str, Any], author: AuthorName = "llm") -> AgentLimits:
    """What an attempt of an author may take, from the options of `llm`."""
    from passnet.agent.settings import SEARCH_TURNS, AgentLimits

    turns = options["turns"] or (SEARCH_TURNS if author == "search" else AgentLimits.turns)
    return AgentLimits(turns, *(options[name] for name in ("tokens", "max_seconds", "cost")))


def picked(options: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Some options by their names, which are those of fields that they are for."""
    return {name: options[name] for name in names}
