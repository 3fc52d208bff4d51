"""`passnet agent`: let an llm or a program write passes for the tasks of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli.options import (
    POSITIVE,
    open_suite,
    self_tolerance_option,
    suite_option,
    task_option,
)
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.agent.attempt import Attempt
    from passnet.agent.selection import TrainingForm
    from passnet.agent.settings import AgentSettings, AuthorName
    from passnet.judge.inspection.rules import RulesName

paths_argument = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))


@click.group()
def agent() -> None:
    """Attempts of llms and programs at tasks, and what is learned from them."""


@agent.command("run")
@suite_option
@task_option
@click.option("--llm", help="provider/name as Inspect has it (openai/…, anthropic/…, hf/…), or "
              "scripted, or scripted/FILE.")  # fmt: skip
@click.option(
    "--author",
    type=click.Choice(["llm", "compiler", "search"]),
    help="Who writes; the default is llm if --llm is given.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--base-url", help="Address of an OpenAI-compatible endpoint.")
@click.option("--temperature", type=click.FloatRange(min=0), help="Of the llm's answers.")
@click.option("--max-output-tokens", type=click.IntRange(min=1), help="Of one answer.")
@click.option("--emulate-tools", is_flag=True, help="For endpoints that know no tool calls.")
@click.option(
    "--retries",
    default=3,
    show_default=True,
    type=click.IntRange(min=0),
    help="How often a failed request is made again.",
)
@click.option(
    "--turns",
    default=50,
    show_default=True,
    type=click.IntRange(min=1),
    help="How often the llm may speak in an attempt.",
)
@click.option("--tokens", type=click.IntRange(min=1), help="Most tokens of an attempt.")
@click.option("--time", "seconds_limit", type=click.IntRange(min=1), help="Most seconds of one.")
@click.option("--cost", type=POSITIVE, help="Most dollars of an attempt.")
@click.option("--price", nargs=2, type=float, help="Dollars for a million tokens in, and out.")
@click.option(
    "--attempts",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
    help="Attempts at each task.",
)
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(min=1),
              help="Attempts of an llm at a time; what is timed runs alone.")  # fmt: skip
@click.option("--guarded", is_flag=True, help="Submit nothing where nothing won.")
@click.option("--call", type=click.Choice(["compiled", "direct"]), default="compiled",
              show_default=True, help="How the rewritten graph is called.")  # fmt: skip
@click.option(
    "--rules",
    default="strict",
    show_default=True,
    type=click.Choice(["open", "strict"]),
    help="What replacements may use; strict: own kernels only, no torch ops.",
)
@click.option("--held-out", help="A suite of other shapes of the same tasks.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1),
              help="Threads of reference and candidate.")  # fmt: skip
@click.option("--seconds", default=0.4, show_default=True, type=POSITIVE,
              help="Time to measure each graph.")  # fmt: skip
@self_tolerance_option
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0),
              help="Of inputs, and of the first attempt.")  # fmt: skip
@click.option(
    "--sandbox",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "bubblewrap", "unshare", "none"]),
    help="What confines candidate code.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON.")
def agent_run(suite_name: str, tasks: tuple[str, ...], llm: str | None, author: AuthorName | None,
              out: Path, resume: bool, jobs: int, held_out: str | None, as_json: bool,
              **options: Any) -> None:  # fmt: skip
    """Let an author write passes for the tasks of a suite; keep every attempt in a folder.

    An llm (--llm) works with tools over many turns; a compiler or a search (--author) writes by
    itself. The best pass folders lie under OUT/passes, to be judged with `passnet bench run`.
    """
    from passnet.agent.run import ATTEMPTS_FILE, run_agent
    from passnet.report.progress import progress

    suite = open_suite(suite_name, tasks)
    unseen = open_suite(held_out, ()) if held_out else None
    settings = _settings(llm, author, options)
    for note in suite.notes:
        click.echo(f"note: {note}", err=True)
    total = len(suite.tasks) * settings.num_attempts
    with progress(f"writing passes for {suite.name}", total) as step:
        attempts = run_agent(
            suite,
            settings,
            out,
            resume,
            jobs,
            unseen,
            lambda item: step(f"{item.task}: {item.ending}"),
        )
    for item in attempts:
        if item.error is not None:
            click.echo(f"{item.task}: {item.error}", err=True)
    if not attempts:
        raise InputError(f"{out}: no attempt ended; see the messages above, then use --resume")
    _print_stats(attempts, as_json)
    click.echo(f"written to {out}: {ATTEMPTS_FILE} and the best pass folders", err=as_json)


def _settings(llm: str | None, author: AuthorName | None, options: dict[str, Any]) -> AgentSettings:
    from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
    from passnet.bench.run import RunSettings
    from passnet.judge.processes.sandbox import find_sandbox
    from passnet.judge.timing.clock import TimingPlan
    from passnet.judge.trial import JudgeSettings

    author = author or ("llm" if llm else None)
    if author is None:
        raise InputError("who is to write? give --llm provider/name, or --author compiler")
    if llm is not None and author != "llm":
        raise InputError(f"--llm does not go with --author {author}")
    confinement = find_sandbox(options["sandbox"])
    if confinement.name == "none":
        click.echo(f"note: candidate code is not confined: {confinement.reason}", err=True)
    judge = JudgeSettings(
        device=options["device"],
        seed=options["seed"],
        timing=TimingPlan(seconds=options["seconds"]),
        self_tolerance=options["self_tolerance"],
        rules=options["rules"],
    )
    return AgentSettings(
        author=author,
        llm=None
        if llm is None
        else LlmSettings(
            llm,
            options["base_url"],
            options["temperature"],
            options["max_output_tokens"],
            options["retries"],
            price=options["price"],
            emulates_tools=options["emulate_tools"],
        ),
        run=RunSettings(judge, options["threads"], confinement.name),
        call=options["call"],
        limits=AgentLimits(
            options["turns"], options["tokens"], options["seconds_limit"], options["cost"]
        ),
        seed=options["seed"],
        num_attempts=options["attempts"],
        is_guarded=options["guarded"],
    )


def _print_stats(attempts: list[Attempt], as_json: bool) -> None:
    from passnet.agent.report import stats_tables
    from passnet.agent.stats import summarise
    from passnet.cli.output import print_json, print_tables

    stats = summarise(attempts)
    if as_json:
        print_json(stats)
    else:
        print_tables(stats_tables(stats))


@agent.command("stats")
@paths_argument
@click.option("--figure", type=click.Path(path_type=Path), help="Draw the learning curves (SVG).")
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON.")
def agent_stats(paths: tuple[Path, ...], figure: Path | None, as_json: bool) -> None:
    """Print what attempts in PATHS show: scores by evaluation, conduct, effort, our own time.

    PATHS are run folders, or files of attempts.
    """
    from passnet.agent.report import draw_curves
    from passnet.agent.stats import summarise
    from passnet.agent.trajectories import read_attempts

    attempts = read_attempts(paths)
    _print_stats(attempts, as_json)
    if figure is not None:
        draw_curves(summarise(attempts), figure)
        click.echo(f"written: {figure}", err=as_json)


@agent.command("export")
@paths_argument
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The JSON-lines file.")
@click.option("--suite", "suites", multiple=True, required=True,
              help="A suite that the attempts were made on (repeatable).")  # fmt: skip
@click.option("--eval", "evaluation", multiple=True,
              help="A suite of evaluation, whose tasks are left out (repeatable).")  # fmt: skip
@click.option("--eval-task", "eval_tasks", multiple=True, help="A task that is left out.")
@click.option("--form", default="chat", show_default=True, type=click.Choice(["chat", "pairs"]),
              help="Whole chats with tool calls, or tasks with their passes.")  # fmt: skip
@click.option("--min-score", default=1.0, show_default=True, help="The least final AS.")
@click.option("--any-ending", is_flag=True, help="Also attempts that did not submit themselves.")
@click.option("--until-best", is_flag=True, help="Cut chats after their best evaluation.")
def agent_export(paths: tuple[Path, ...], out: Path, suites: tuple[str, ...],
                 evaluation: tuple[str, ...], eval_tasks: tuple[str, ...], form: TrainingForm,
                 min_score: float, any_ending: bool, until_best: bool) -> None:  # fmt: skip
    """Make training data of the attempts in PATHS, in the chat format that TRL reads.

    Left out are attempts with an exploit, below the least score, at tasks of evaluation, and
    copies of others; how many for which reason is printed, and written beside the file.
    """
    from passnet.agent.prompt import instruction
    from passnet.agent.report import training_table
    from passnet.agent.selection import Filters, select
    from passnet.agent.training_data import write_chats, write_pairs
    from passnet.agent.trajectories import read_attempts
    from passnet.cli.output import print_tables
    from passnet.suite.suite_keys import read_suites

    if until_best and form == "pairs":
        raise InputError("--until-best cuts chats; it does not go with --form pairs")
    attempts = read_attempts(paths)
    chosen = select(
        attempts,
        [open_suite(name, ()) for name in suites],
        read_suites(evaluation),
        Filters(min_score, not any_ending, eval_tasks),
        form,
    )
    if form == "chat":
        info = write_chats(out, chosen, until_best)
    else:
        settings = attempts[0].settings
        info = write_pairs(out, chosen, lambda task: instruction(task, settings))
    print_tables([training_table(info)])
    click.echo(f"written: {out}")


@agent.command("harbor")
@suite_option
@task_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder to make.")
@click.option("--wheel", type=click.Path(path_type=Path),
              help="passnet for the verifier (`pip wheel --no-deps .` makes one).")  # fmt: skip
@click.option("--requirement", help="What pip installs as passnet, where an index has it.")
@click.option("--solutions", type=click.Path(path_type=Path),
              help="A pass folder, or a folder of them, one a task.")  # fmt: skip
@click.option("--held-out", help="A suite of other shapes of the same tasks.")
@click.option("--rules", default="strict", show_default=True,
              type=click.Choice(["open", "strict"]), help="What replacements may use.")  # fmt: skip
@click.option("--threads", default=1, show_default=True, type=click.IntRange(min=1),
              help="Threads of reference and candidate.")  # fmt: skip
@click.option("--base-image", default="python:3.12-bookworm", show_default=True)
def agent_harbor(suite_name: str, tasks: tuple[str, ...], out: Path, wheel: Path | None,
                 requirement: str | None, solutions: Path | None, held_out: str | None,
                 rules: RulesName, threads: int, base_image: str) -> None:  # fmt: skip
    """Write the tasks of a suite as a Harbor dataset, judged by a separate verifier."""
    from passnet.agent.harbor import HarborPlan, export_harbor
    from passnet.agent.prompt import instruction
    from passnet.bench.run import RunSettings
    from passnet.judge.trial import JudgeSettings

    unseen = open_suite(held_out, ()) if held_out else None
    settings = RunSettings(
        JudgeSettings(rules=rules), threads, held_out=unseen.content_hash if unseen else None
    )
    plan = HarborPlan(settings, base_image=base_image, wheel=wheel, passnet=requirement)
    made = export_harbor(
        open_suite(suite_name, tasks),
        out,
        lambda task: instruction(task, settings),
        plan,
        unseen,
        solutions,
    )
    click.echo(
        f"written to {out}: {made.num_tasks} tasks, {made.num_held_out} with held-out shapes, "
        f"{made.num_solutions} with a solution"
    )
