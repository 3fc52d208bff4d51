"""`passnet agent`: let an llm or a program write passes for the tasks of a suite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from passnet.cli.options import POSITIVE, open_suite, suite_option, task_option
from passnet.cli.output import print_json, print_tables
from passnet.errors import InputError


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
def agent_run(suite_name: str, tasks: tuple[str, ...], llm: str | None, author: str | None,
              out: Path, resume: bool, jobs: int, held_out: str | None, as_json: bool,
              **options: Any) -> None:  # fmt: skip
    """Let an author write passes for the tasks of a suite; keep every attempt in a folder.

    An llm (--llm) works with tools over many turns; a compiler or a search (--author) writes by
    itself. The best pass folders lie under OUT/passes, to be judged with `passnet bench run`.
    """
    from passnet.agent.run import ATTEMPTS_FILE, run_agent
    from passnet.report.progress import progress

    if options["device"] == "cuda":
        raise InputError("device cuda is not supported yet; use --device cpu")
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


def _settings(llm: str | None, author: str | None, options: dict[str, Any]) -> Any:
    from passnet.agent.settings import AgentLimits, AgentSettings, LlmSettings
    from passnet.bench.run import RunSettings
    from passnet.judge.clock import TimingPlan
    from passnet.judge.sandbox import find_sandbox
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


def _print_stats(attempts: list[Any], as_json: bool) -> None:
    pass
