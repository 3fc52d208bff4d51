"""`passnet agent`: let an llm or a program write passes for the tasks of a suite."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli.exits import fail
from passnet.cli.output import print_json, print_notes, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.agent.attempts.attempt import Attempt
    from passnet.agent.settings import AgentSettings, AuthorName
    from passnet.agent.trajectories.selection import TrainingForm
    from passnet.core.jobs.run_plan import RunShard
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite


@click.group()
def agent() -> None:
    """Have llms or programs write passes, and make training data of their attempts."""


@agent.command("run")
@opt.suite
@opt.option("--llm", "The llm that writes, as Inspect names it (openai/…, anthropic/…, hf/…); "
            "scripted plays a script of passnet, scripted/FILE one of your own.",
            metavar="PROVIDER/NAME")  # fmt: skip
@opt.choice("--author", ["llm", "compiler", "search", "trained"], "Who writes the passes: an llm, "
            "which is the default with --llm, a program, or a small llm of ours.")  # fmt: skip
@opt.path("--checkpoint", "The folder of the llm, for the author trained.")
@opt.out("The run folder")
@opt.resume
@opt.shard("tasks")
@opt.parts("run")
@opt.llm
@opt.flag("--guarded", "Submit only what scores better than leaving the graph alone.", "is_guarded")
@opt.choice("--call", ["compiled", "direct", "guarded"],
            "How rewritten graphs are called: by torch.compile, directly, or behind own checks.",
            default="compiled")  # fmt: skip
@opt.executor_name
@opt.held_out
@opt.judging("strict", seed="the inputs and of the first attempt")
@opt.json
def agent_run(suite: Suite, llm: str | None, author: AuthorName | None, checkpoint: Path | None,
              out: Path, resume: bool, shard: RunShard, taken: tuple[Path, ...], jobs: int,
              executor: str, held_out: Suite | None,
              sandbox: Sandbox, as_json: bool, **options: Any) -> None:  # fmt: skip
    """Let an author write passes for the tasks of a suite, and keep every attempt in a folder.

    An llm (--llm) works with tools over many turns; a compiler or a search (--author) writes by
    itself. The best pass folders are put under OUT/passes, to be judged with `passnet bench run`.
    Exits with 1 if all attempts failed.
    """
    from passnet.agent.attempts.attempt import ATTEMPTS_FILE
    from passnet.agent.run import run_agent
    from passnet.core.jobs.executors import run_local, run_ray
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import progress

    settings = _settings(llm, author, sandbox, options)
    program = None
    if (author == "trained") != (checkpoint is not None):
        raise InputError("--author trained and --checkpoint FOLDER go together")
    if checkpoint is not None:
        from passnet_loops.author import trained_program

        program = trained_program(checkpoint)
        settings = replace(settings, checkpoint=str(checkpoint))
    print_notes(suite.notes, sandbox)
    num_tasks = sum(shard.has(task.name) for task in suite.tasks)
    with progress(f"writing passes for {suite.name}", num_tasks * settings.num_attempts) as step:
        attempts = run_agent(
            suite,
            settings,
            out,
            RunPlan(
                resume=resume,
                num_workers=jobs,
                progress=lambda attempt: step(f"{attempt.task}: {attempt.ending}"),
                executor=run_ray if executor == "ray" else run_local,
                shard=shard,
                parts=taken,
            ),
            held_out=held_out,
            program=program,
        )
    for attempt in attempts:
        for text in (attempt.error, attempt.untimed):
            if text is not None:
                click.echo(f"{attempt.task}: {text}", err=True)
    if not attempts:
        fail(f"{out}: no attempt ended; see the messages above, then use --resume")
    _print_stats(attempts, as_json)
    click.echo(f"written to {out}: {ATTEMPTS_FILE} and the best pass folders", err=as_json)
    if all(attempt.ending == "error" for attempt in attempts):
        fail(f"all {len(attempts)} attempts failed; --resume makes them again")


def _settings(
    llm: str | None, author: AuthorName | None, sandbox: Sandbox, options: dict[str, Any]
) -> AgentSettings:
    from passnet.agent.settings import AgentSettings

    author = author or ("llm" if llm else None)
    if author is None:
        raise InputError("there is no author: give --llm provider/name, or --author compiler")
    if llm is not None and author != "llm":
        raise InputError(f"--llm does not go with --author {author}")
    attempt = ("call", "seed", "num_attempts", "is_guarded")
    return AgentSettings(
        author=author,
        llm=opt.llm_settings(llm, options) if llm else None,
        run=opt.run_settings(sandbox, options),
        limits=opt.attempt_limits(options, author),
        **opt.picked(options, attempt),
    )


def _print_stats(attempts: list[Attempt], as_json: bool) -> None:
    from passnet.agent.trajectories.stats import summarise
    from passnet.pages.tables.attempt_tables import stats_tables

    stats = summarise(attempts)
    if as_json:
        print_json(stats)
    else:
        print_tables(stats_tables(stats))


@agent.command("stats")
@opt.paths
@opt.path("--figure", "A file to draw the learning curves in, NAME.svg or NAME.png.")
@opt.json
def agent_stats(paths: tuple[Path, ...], figure: Path | None, as_json: bool) -> None:
    """Print the statistics of the attempts in PATHS, which are run folders or files of attempts.

    These are scores by number of evaluations, how attempts ended, what they cost, and the time that
    passnet itself took.
    """
    from passnet.agent.attempts.attempt import read_attempts
    from passnet.agent.trajectories.stats import summarise
    from passnet.pages.tables.attempt_tables import draw_curves

    attempts = read_attempts(paths)
    _print_stats(attempts, as_json)
    if figure is not None:
        draw_curves(summarise(attempts), figure)
        click.echo(f"written: {figure}", err=as_json)


@agent.command("export")
@opt.paths
@opt.out("The JSON-lines file")
@opt.suites("--suite", "A suite that the attempts were made on (repeatable).", "suites",
            required=True)  # fmt: skip
@opt.suites("--eval", "A suite to evaluate on, whose tasks are left out (repeatable).",
            "evaluation")  # fmt: skip
@opt.option("--eval-task", "A task to evaluate on, which is left out (repeatable).", "eval_tasks",
            multiple=True, metavar="NAME")  # fmt: skip
@opt.choice("--form", ["chat", "pairs"],
            "What to write: whole chats with tool calls, or pairs of a task and its passes.",
            default="chat")  # fmt: skip
@opt.least("--min-score", "The least AS that the submission of an attempt must have.", default=1.0)
@opt.flag("--any-ending", "Include attempts that ended without a submission.")
@opt.flag("--until-best", "Cut chats off after their best evaluation.")
def agent_export(paths: tuple[Path, ...], out: Path, suites: tuple[str, ...],
                 evaluation: tuple[str, ...], eval_tasks: tuple[str, ...], form: TrainingForm,
                 min_score: float, any_ending: bool, until_best: bool) -> None:  # fmt: skip
    """Make training data of the attempts in PATHS, in the chat format that TRL reads.

    Attempts with an exploit, below the least score, or at tasks of evaluation are left out, and so
    are copies. How many are left out for which reason is printed, and written beside the file.
    """
    from passnet.agent.attempts.attempt import read_attempts
    from passnet.agent.prompt import instruction
    from passnet.agent.trajectories.selection import Filters, select
    from passnet.agent.trajectories.training_data import write_chats, write_pairs
    from passnet.judge.suite.suite import load_suite
    from passnet.judge.suite.suite_keys import read_suite_keys
    from passnet.pages.tables.attempt_tables import training_table

    if until_best and form == "pairs":
        raise InputError("--until-best cuts chats; it does not go with --form pairs")
    attempts = read_attempts(paths)
    selection = select(
        attempts,
        [load_suite(name) for name in suites],
        read_suite_keys(evaluation),
        Filters(min_score, not any_ending, eval_tasks),
        form,
    )
    if form == "chat":
        info = write_chats(out, selection, until_best)
    else:
        settings = attempts[0].settings
        info = write_pairs(out, selection, lambda task: instruction(task, settings))
    print_tables([training_table(info)])
    click.echo(f"written: {out}")
