"""`passnet agent`: let an LLM or a program write passes for the tasks of a suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_notes, print_result, say
from passnet.errors import InputError

if TYPE_CHECKING:
    from datetime import datetime

    from passnet.agent.attempts.attempt import Attempt
    from passnet.agent.attempts.session import Session
    from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite


OF_LLM = {
    "--base-url", "--temperature", "--max-output-tokens", "--emulate-tools", "--retries",
    "--answer-timeout", "--price", "--tokens", "--timeout", "--cost",
}  # fmt: skip
"""Options of `passnet agent run` for LLMs that work over many turns."""


@click.group(cls=ExtensibleGroup)
def agent() -> None:
    """Have LLMs or programs write passes, and make training data of their attempts."""


@dataclass(frozen=True, kw_only=True)
class AgentRunOptions:
    """Options of `passnet agent run`."""

    suite: Suite = opt.suite()

    llm: str | None = opt.field(None, metavar="PROVIDER/NAME")
    """Ask this LLM, as Inspect names it (openai/…, anthropic/…, hf/…); scripted plays passnet's
    script, scripted/FILE your own.
    """

    author: Literal["llm", "compiler", "search", "trained"] | None = None
    """Have passes written by an LLM (the default with --llm), by a program, or by a small trained
    LLM.
    """

    checkpoint: Path | None = None
    """Load the LLM of --author trained from this folder."""

    out: Path
    """Write the run to this folder."""

    plan: RunPlan = opt.plan("resume", "shard", "parts", "executor", "num_workers", jobs=1)

    settings: AgentSettings = opt.agent_settings("is_guarded")

    llm_settings: LlmSettings = opt.llm_settings()

    turns: int | None = opt.shared("turns")

    limits: AgentLimits = opt.attempt_limits()

    run: RunSettings = opt.judging(rules="strict")

    sandbox: Sandbox = opt.shared("sandbox")

    held_out: Suite | None = opt.shared("held_out")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("run", agent)
def agent_run(options: AgentRunOptions) -> None:
    """Let an author write passes for the tasks of a suite, and keep every attempt in a folder.

    An LLM (--llm) works with tools over many turns; a compiler or a search (--author) writes by
    itself. The best pass folders go to OUT/passes, to be judged with `passnet bench run`. --jobs
    counts attempts of an LLM, of which one measures at a time, or actors on a Ray cluster. Exits
    with 1 if all attempts failed, or none evaluated a pass folder.
    """
    from passnet.agent.attempts.attempt import ATTEMPTS_FILE
    from passnet.agent.authors.programs import program_author
    from passnet.agent.run import run_agent
    from passnet.core.terminal.progress import progress

    suite, out, plan = options.suite, options.out, options.plan
    settings = _settings(options)
    program = None
    if (settings.author == "trained") != (options.checkpoint is not None):
        raise InputError("--author trained and --checkpoint FOLDER go together")
    if options.checkpoint is not None:
        program = program_author(f"trained:{options.checkpoint}", settings.limits.turns)
    print_notes(suite.notes, options.sandbox)
    num_tasks = sum(plan.shard.has(task.name) for task in suite.tasks)
    with progress(f"writing passes for {suite.name}", num_tasks * settings.num_attempts) as step:
        plan = replace(plan, progress=lambda attempt: step(f"{attempt.task}: {attempt.ending}"))
        watch = spending(lambda text: step(text, advance=0))
        attempts = run_agent(suite, settings, out, plan, options.held_out, program, watch)
    for attempt in attempts:
        for text in (attempt.error, attempt.untimed):
            if text is not None:
                say(f"{attempt.task}: {text}", err=True)
    if not attempts:
        fail(f"{out}: no attempt ended; see the messages above, then use --resume")
    _print_stats(attempts, options.json, options.wide)
    best = " and the best pass folders" if any(attempt.files for attempt in attempts) else ""
    say(f"written to {out}: {ATTEMPTS_FILE}{best}", err=options.json)
    endings = Counter(attempt.ending for attempt in attempts)
    if endings["error"] == len(attempts):
        fail(f"all {len(attempts)} attempts failed; --resume repeats them")
    if not any(attempt.evaluations for attempt in attempts):
        counts = ", ".join(f"{count} {ending}" for ending, count in endings.items())
        fail(f"no attempt evaluated a pass folder: {counts}")


def spending(show: Callable[[str], None]) -> Callable[[Session], None]:
    """Return a function that shows what all attempts have spent, one answer after another."""
    spent: dict[tuple[str, datetime], tuple[int, int, float]] = {}

    def watch(session: Session) -> None:
        tokens = session.input_tokens + session.output_tokens
        key = session.task.name, session.started
        spent[key] = session.num_turns, tokens, session.cost or 0.0
        turns, tokens, cost = map(sum, zip(*spent.values(), strict=True))
        price = f", ${cost:.2f}" if cost else ""
        show(f"{turns} turns, {tokens:,} tokens{price}")

    return watch


def _settings(options: AgentRunOptions) -> AgentSettings:
    author = options.author or ("llm" if options.llm else None)
    if author is None:
        raise InputError("there is no author: give --llm provider/name, or --author compiler")
    if options.llm is not None and author != "llm":
        raise InputError(f"--llm does not go with --author {author}")
    given = opt.options_given()
    for asker, words in (("llm", OF_LLM), ("search", {"--turns"})):
        ignored = sorted(words & given) if author not in ("llm", asker) else []
        if ignored:
            raise InputError(f"{', '.join(ignored)}: does not go with --author {author}")
    return replace(
        options.settings,
        author=author,
        llm=replace(options.llm_settings, name=options.llm) if options.llm else None,
        run=replace(options.run, sandbox=options.sandbox.name),
        limits=replace(options.limits, turns=opt.turns_of(options.turns, author)),
        seed=options.run.judge.seed,
        checkpoint=str(options.checkpoint) if options.checkpoint else None,
    )


def _print_stats(attempts: list[Attempt], as_json: bool, wide: bool) -> None:
    from passnet.agent.trajectories.stats import summarise
    from passnet.pages.tables.attempt_tables import stats_tables

    stats = summarise(attempts)
    print_result(as_json, stats, tables=stats_tables(stats), wide=wide)


@dataclass(frozen=True, kw_only=True)
class AgentStatsOptions:
    """Options of `passnet agent stats`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    figure: Path | None = opt.shared("figure")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("stats", agent)
def agent_stats(options: AgentStatsOptions) -> None:
    """Print the statistics of the attempts in PATHS, which are run folders or files of attempts.

    They are scores by number of evaluations, endings of attempts, costs, and passnet's own time.
    The figure has the learning curves.
    """
    from passnet.agent.attempts.attempt import read_attempts
    from passnet.agent.trajectories.stats import summarise
    from passnet.pages.tables.attempt_tables import draw_curves

    attempts = read_attempts(options.paths)
    _print_stats(attempts, options.json, options.wide)
    if options.figure is not None:
        draw_curves(summarise(attempts), options.figure)
        say(f"written: {options.figure}", err=options.json)


@dataclass(frozen=True, kw_only=True)
class AgentExportOptions:
    """Options of `passnet agent export`."""

    paths: tuple[Path, ...] = opt.argument(nargs=-1)

    out: Path
    """Write the training data to this JSON-lines file."""

    suites: tuple[str, ...] = opt.field(
        option="suite", metavar="SUITE", complete=opt.completion.suites
    )
    """Read the tasks of the attempts from this suite."""

    evaluation: tuple[str, ...] = opt.shared("evaluation")

    eval_tasks: tuple[str, ...] = opt.field((), option="eval-task", metavar="NAME")
    """Keep training apart from this task, which is for evaluation."""

    form: Literal["chat", "pairs"] = "chat"
    """Write whole chats with tool calls, or pairs of a task and its passes."""

    min_score: float = opt.field(1.0, least=0)
    """Leave out attempts whose submission has a lower AS than this."""

    any_ending: bool = False
    """Include attempts that ended without a submission."""

    until_best: bool = False
    """Cut chats off after their best evaluation."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("export", agent)
def agent_export(options: AgentExportOptions) -> None:
    """Make training data of the attempts in PATHS, in the chat format that TRL reads.

    Attempts with an exploit, below the least score, or at tasks of evaluation or PassBench are left
    out, and so are duplicates. Their number by reason is printed, and written beside the file.
    """
    from passnet.agent.attempts.attempt import read_attempts
    from passnet.agent.prompt import instruction
    from passnet.agent.trajectories.selection import Filters, select
    from passnet.agent.trajectories.training_data import write_chats, write_pairs
    from passnet.judge.suite.suite import benchmarks, load_suite, read_suite_keys
    from passnet.pages.tables.attempt_tables import training_table

    if options.until_best and options.form == "pairs":
        raise InputError("--until-best cuts chats; it does not go with --form pairs")
    attempts = read_attempts(options.paths)
    selection = select(
        attempts,
        [load_suite(name) for name in options.suites],
        read_suite_keys([*options.evaluation, *benchmarks()]),
        Filters(options.min_score, not options.any_ending, options.eval_tasks),
        options.form,
    )
    if options.form == "chat":
        info = write_chats(options.out, selection, options.until_best)
    else:
        info = write_pairs(options.out, selection, instruction)
    print_result(options.json, info, tables=[training_table(info)], wide=options.wide)
    say(f"written: {options.out}", err=options.json)
