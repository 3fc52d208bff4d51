"""The command line: one group of commands a stage; what takes time to import, commands import."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet import __version__
from passnet.errors import InputError, PassnetError

if TYPE_CHECKING:
    from passnet.bench.scores import CandidateScore
    from passnet.judge.trial import Trial

USAGE_ERROR = 2
FAILURE = 1
TABLE_WIDTH = 150
"""Columns of a table that goes to a file or a pipe."""


class _Group(click.Group):
    """A group whose commands end with one clear sentence where a PassnetError ends them."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except PassnetError as cause:
            click.echo(f"passnet: {cause}", err=True)
            ctx.exit(USAGE_ERROR if isinstance(cause, InputError) else FAILURE)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Find the graphs where a tensor compiler loses, write passes for them, prove their worth."""


@main.group()
def graph() -> None:
    """Graph directories: check them, show them."""


@graph.command("check")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--no-build", is_flag=True, help="Only parse and round-trip; needs no torch.")
@click.option("--jobs", default=0, help="Processes; 0 is one a core.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object instead.")
@click.pass_context
def graph_check(
    ctx: click.Context, paths: tuple[Path, ...], no_build: bool, jobs: int, as_json: bool
) -> None:
    """Check every graph directory below PATHS.

    Does it parse, does its print parse to the same, does it build? Building runs the graph under
    fake tensors, without memory. Prints a line for each failure and a summary. Exits 0 only if all
    graphs parse and round-trip.
    """
    import os

    from passnet.errors import GraphError
    from passnet.graph.check import check_all, find_all
    from passnet.report.progress import progress

    folders = find_all(paths)
    if not folders:
        raise GraphError(f"{paths[0]}: holds no graph (a folder with graph_net.json and model.py)")
    num_processes = jobs or len(os.sched_getaffinity(0))
    if no_build:
        num_processes = min(num_processes, max(1, len(folders) // 50))
    with progress("checking graphs", len(folders)) as step:
        checks = list(check_all(folders, not no_build, num_processes, lambda _: step()))
    failed = [item for item in checks if not item.parsed]
    unbuilt = [item for item in checks if item.built is False]
    summary = {
        "graphs": len(checks),
        "parsed": len(checks) - len(failed),
        "built": None if no_build else len(checks) - len(failed) - len(unbuilt),
        "ops": sum(item.num_ops for item in checks),
        "structures": len({item.structure for item in checks if item.structure}),
        "distinct": len({item.full for item in checks if item.full}),
    }
    if as_json:
        _print_json({**summary, "failures": [item for item in checks if item.error]})
    else:
        for item in failed:
            click.echo(f"FAILED {item.error}")
        for item in unbuilt:
            click.echo(f"parses, but does not build: {item.error}")
        text = f"{summary['parsed']} of {summary['graphs']} graphs parse and round-trip"
        if not no_build:
            text += f", {summary['built']} run under fake tensors"
        click.echo(
            f"{text}; {summary['ops']} ops, {summary['structures']} structures, "
            f"{summary['distinct']} distinct with literals and shapes"
        )
    if failed:
        ctx.exit(FAILURE)


@graph.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--no-shapes", is_flag=True, help="Do not infer shapes; needs no torch.")
def graph_show(path: Path, no_shapes: bool) -> None:
    """Print the graph in directory PATH: its arguments, and every op with the shape it makes."""
    from passnet.graph.files import read_sample
    from passnet.report.listing import list_graph

    sample = read_sample(path)
    for line in list_graph(sample.graph, str(path / "model.py"), shapes=not no_shapes):
        click.echo(line)


@main.group("pass")
def pass_group() -> None:
    """Pass folders: check one against graphs."""


@pass_group.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--suite",
    "suite_name",
    default="demo",
    show_default=True,
    help="A shipped suite, a Parquet file, or a folder of graphs.",
)
@click.option("--task", "tasks", multiple=True, help="Only this task (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines instead.")
def pass_check(folder: Path, suite_name: str, tasks: tuple[str, ...], as_json: bool) -> None:
    """Say where the passes in FOLDER match, and for a miss how near they came; nothing is timed.

    This runs the code of the pass folder in this process, without any protection.
    """
    from passnet.bench.dry_run import dry_run

    for line in dry_run(folder, _suite(suite_name, tasks), as_json):
        click.echo(line)


@main.group()
def bench() -> None:
    """Runs over a suite: measure, score, list."""


@bench.command("run")
@click.option(
    "--suite",
    "suite_name",
    default="demo",
    show_default=True,
    help="A shipped suite, a Parquet file, or a folder of graphs.",
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    required=True,
    help="eager, null, inductor, or the path of a pass folder (or of a folder of them, one "
    "a task); then @direct to call without torch.compile, @inductor to compile the rest.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--task", "tasks", multiple=True, help="Only this task (repeatable).")
@click.option("--threads", default=1, show_default=True, help="Threads of reference and candidate.")
@click.option(
    "--seconds",
    default=0.4,
    show_default=True,
    help="Time to measure each candidate on each graph.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the inputs.")
@click.option("--memory-mib", default=8192, show_default=True, help="Memory of a worker.")
@click.option("--compile-timeout", default=180.0, show_default=True, help="Seconds to get ready.")
@click.option("--call-timeout", default=30.0, show_default=True, help="Seconds for one call.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@click.option("--brief", is_flag=True, help="Print the totals only, not a table a task.")
@click.pass_context
def bench_run(ctx: click.Context, suite_name: str, candidates: tuple[str, ...], out: Path,
              device: str, tasks: tuple[str, ...], as_json: bool, brief: bool,
              **options: Any) -> None:  # fmt: skip
    """Judge and time CANDIDATES on every graph of a suite; write the run to a folder.

    Exits 0 when it measured, whatever the outcome, and not 0 only when it could not.
    """
    import time

    from passnet.bench.candidates import parse_candidate
    from passnet.bench.run import RunSettings, run_suite
    from passnet.judge.clock import TimingPlan
    from passnet.judge.trial import JudgeSettings
    from passnet.report.progress import progress

    if device == "cuda":
        raise InputError("device cuda is not supported yet; use --device cpu")
    suite = _suite(suite_name, tasks)
    entries = [parse_candidate(text, suite.tasks) for text in candidates]
    for note in dict.fromkeys(note for entry in entries for note in entry.notes):
        click.echo(f"note: {note}", err=True)
    settings = RunSettings(
        JudgeSettings(
            device=device,
            seed=options["seed"],
            timing=TimingPlan(seconds=options["seconds"]),
            memory_mib=options["memory_mib"],
            compile_timeout_s=options["compile_timeout"],
            call_timeout_s=options["call_timeout"],
        ),
        options["threads"],
    )
    start = time.monotonic()
    with progress(f"judging {suite.name}", sum(len(task.graphs) for task in suite.tasks)) as step:
        trials = run_suite(
            suite, entries, settings, out, options["resume"], lambda item, _: step(item.name)
        )
    _report(out, trials, as_json, brief, time.monotonic() - start)


@bench.command("score")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--b", default=0.1, show_default=True, help="Penalty of an error not tolerated.")
@click.option("--p", default=0.0, show_default=True, help="Penalty of a slow-down.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def bench_score(path: Path, b: float, p: float, as_json: bool) -> None:
    """Score the trials in PATH anew: a run folder, or a JSON-lines file.

    A line needs task, graph, status, smallest_t and speedup; candidate is optional.
    """
    from passnet.bench.scores import as_json as to_json
    from passnet.bench.scores import read_rows, score_rows

    scores = score_rows(read_rows(path), b, p)
    if as_json:
        _print_json(to_json(scores, b, p))
    else:
        _print_totals(scores)


@bench.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--task", "tasks", multiple=True, help="Only this task (repeatable).")
def bench_show(path: Path, tasks: tuple[str, ...]) -> None:
    """Print the tables of the run folder PATH: one a task, and the total."""
    from passnet.bench.files import TRIALS_FILE
    from passnet.bench.run import read_trials
    from passnet.bench.scores import read_rows, score_rows

    scores = score_rows(read_rows(path))
    trials = [item for item in read_trials(path / TRIALS_FILE) if not tasks or item.task in tasks]
    _print_tasks(trials)
    _print_totals(scores)
    _print_failures(trials)


@bench.command("list")
@click.argument("suite_name", default="demo")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")
def bench_list(suite_name: str, as_json: bool) -> None:
    """List the tasks of a suite: how many graphs, of which nets, and their ops."""
    suite = _suite(suite_name, ())
    rows = [
        {
            "task": task.name,
            "graphs": [item.name for item in task.graphs],
            "nets": sorted({item.source.net for item in task.graphs if item.source}),
            "ops": list(task.ops),
        }
        for task in suite.tasks
    ]
    if as_json:
        _print_json(rows)
        return
    for row in rows:
        names = " ".join(op.rsplit(".", 1)[-1] for op in row["ops"])
        click.echo(
            f"{row['task']}: {len(row['graphs'])} graphs of {len(row['nets'])} nets: {names}"
        )


def _suite(name: str, tasks: tuple[str, ...]) -> Any:
    """The suite of a name or path, all of it or some of its tasks."""
    from passnet.dataset.suite import load_suite, make_suite

    suite = load_suite(name)
    if not tasks:
        return suite
    known = [task.name for task in suite.tasks]
    for task in tasks:
        if task not in known:
            raise InputError(f"suite {suite.name} has no task {task!r}; it has {', '.join(known)}")
    graphs = [item for task in suite.tasks if task.name in tasks for item in task.graphs]
    return make_suite(suite.name, graphs)


def _report(out: Path, trials: list[Trial], as_json: bool, brief: bool, wall_s: float) -> None:
    """Write scores, tables and the figure of a run, and print them."""
    from passnet.bench.files import FIGURE_FILE, RUN_FILE, SCORES_FILE, TABLES_FILE, TRIALS_FILE
    from passnet.bench.scores import as_json as to_json
    from passnet.bench.scores import read_rows, score_rows
    from passnet.records import write_json
    from passnet.report.figures import draw_es
    from passnet.report.tables import markdown, phase_table, task_overview, task_tables, total_table
    from passnet.score.es import SEVERE_PENALTY, SLOWDOWN_PENALTY

    scores = score_rows(read_rows(out))
    record = to_json(scores, SEVERE_PENALTY, SLOWDOWN_PENALTY)
    tables = [total_table(scores), task_overview(scores), *task_tables(trials)]
    write_json(out / SCORES_FILE, record)
    (out / TABLES_FILE).write_text(markdown(tables), encoding="utf-8")
    draw_es(scores, out / FIGURE_FILE)
    if as_json:
        _print_json(record)
        return
    if not brief:
        _print_tasks(trials)
    _print_totals(scores)
    _print_failures(trials)
    _print_tables([phase_table(trials, wall_s)])
    written = (RUN_FILE, TRIALS_FILE, SCORES_FILE, TABLES_FILE, FIGURE_FILE)
    click.echo(f"written to {out}: {', '.join(written)}")


def _print_tasks(trials: list[Trial]) -> None:
    from passnet.report.tables import task_tables

    _print_tables(task_tables(trials))


def _print_totals(scores: list[CandidateScore]) -> None:
    from passnet.report.tables import task_overview, total_table

    _print_tables([task_overview(scores), total_table(scores)])


def _print_failures(trials: list[Trial]) -> None:
    from passnet.report.tables import failure_lines

    for line in failure_lines(trials):
        click.echo(line)


def _print_tables(tables: list[Any]) -> None:
    from rich.console import Console

    from passnet.report.tables import print_table

    console = Console()
    if not console.is_terminal:
        console = Console(width=TABLE_WIDTH)
    for table in tables:
        print_table(console, table)


def _print_json(value: Any) -> None:
    import msgspec

    sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


if __name__ == "__main__":
    main()
