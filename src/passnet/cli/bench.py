"""`passnet bench`: measure candidates over a suite, score, show, list."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from passnet.cli.options import (
    POSITIVE,
    cores,
    open_suite,
    self_tolerance_option,
    suite_option,
    task_option,
)
from passnet.cli.output import (
    print_failures,
    print_json,
    print_tables,
    print_tasks,
    print_totals,
    report,
)
from passnet.cli.suite import admit_command, list_command, make_command, show_suite
from passnet.errors import InputError


@click.group()
def bench() -> None:
    """Runs over a suite: measure, score, list."""


@bench.command("run")
@suite_option
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    required=True,
    help="eager, null, inductor, or the path of a pass folder (or of a folder of them, one "
    "a task); then @direct to call without torch.compile, @inductor to compile the rest.",
)
@click.option(
    "--held-out",
    help="A suite of other shapes of the same tasks: passes that are wrong on them are rejected.",
)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The run folder.")
@click.option("--device", default="cpu", show_default=True, type=click.Choice(["cpu", "cuda"]))
@click.option("--resume", is_flag=True, help="Go on with a run that was interrupted.")
@click.option("--retry", is_flag=True, help="With --resume: measure again what was unstable.")
@task_option
@click.option(
    "--threads",
    default=1,
    type=click.IntRange(min=1),
    show_default=True,
    help="Threads of reference and candidate.",
)
@click.option(
    "--jobs",
    default=1,
    type=click.IntRange(min=0),
    callback=cores,
    show_default=True,
    help="Tasks that are got ready at a time (0: one a core); what is timed runs alone.",
)
@click.option(
    "--seconds",
    default=0.4,
    type=POSITIVE,
    show_default=True,
    help="Time to measure each candidate on each graph.",
)
@click.option(
    "--seed", default=0, type=click.IntRange(min=0), show_default=True, help="Seed of the inputs."
)
@self_tolerance_option
@click.option(
    "--memory-mib",
    default=8192,
    type=click.IntRange(min=1),
    show_default=True,
    help="Memory of a worker.",
)
@click.option(
    "--compile-timeout",
    default=180.0,
    type=POSITIVE,
    show_default=True,
    help="Seconds to get ready.",
)
@click.option(
    "--call-timeout", default=30.0, type=POSITIVE, show_default=True, help="Seconds for one call."
)
@click.option(
    "--sandbox",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", "bubblewrap", "unshare", "none"]),
    help="What confines candidate code.",
)
@click.option(
    "--rules",
    default="open",
    show_default=True,
    type=click.Choice(["open", "strict"]),
    help="What replacements may use; strict: own kernels only, no torch ops.",
)
@click.option("--require-sandbox", is_flag=True, help="Refuse to run where nothing confines it.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
@click.option("--brief", is_flag=True, help="Print the totals only, not a table a task.")
@click.pass_context
def bench_run(ctx: click.Context, suite_name: str, candidates: tuple[str, ...], out: Path,
              device: str, tasks: tuple[str, ...], as_json: bool, brief: bool, sandbox: str,
              require_sandbox: bool, held_out: str | None, **options: Any) -> None:  # fmt: skip
    """Judge and time CANDIDATES on every graph of a suite; write the run to a folder.

    Exits 0 when it measured, whatever the outcome, and not 0 only when it could not.
    """
    import time

    from passnet.bench.candidates import parse_candidate
    from passnet.bench.run import RunSettings, run_suite
    from passnet.judge.processes.sandbox import find_sandbox
    from passnet.judge.protocol.messages import WorkerLimits
    from passnet.judge.timing.clock import TimingPlan
    from passnet.judge.trial import JudgeSettings
    from passnet.report.progress import progress

    suite = open_suite(suite_name, tasks)
    unseen = open_suite(held_out, ()) if held_out else None
    entries = [parse_candidate(text, suite.tasks) for text in candidates]
    confinement = find_sandbox(sandbox)
    if require_sandbox and confinement.name == "none":
        raise InputError(f"no sandbox, but --require-sandbox: {confinement.reason}")
    notes = [*suite.notes, *(note for entry in entries for note in entry.notes)]
    if confinement.name == "none" and any(entry.folder for entry in entries):
        notes.append(f"candidate code is not confined: {confinement.reason}")
    for note in dict.fromkeys(notes):
        click.echo(f"note: {note}", err=True)
    settings = RunSettings(
        JudgeSettings(
            device=device,
            seed=options["seed"],
            timing=TimingPlan(seconds=options["seconds"]),
            limits=WorkerLimits(options["memory_mib"]),
            compile_timeout_s=options["compile_timeout"],
            call_timeout_s=options["call_timeout"],
            self_tolerance=options["self_tolerance"],
            rules=options["rules"],
        ),
        options["threads"],
        confinement.name,
    )
    start = time.monotonic()
    with progress(f"judging {suite.name}", sum(len(task.graphs) for task in suite.tasks)) as step:
        trials = run_suite(
            suite,
            entries,
            settings,
            out,
            options["resume"],
            lambda item, _: step(item.name),
            unseen,
            options["jobs"],
            options["retry"],
        )
    report(out, trials, as_json, brief, time.monotonic() - start)


@bench.command("score")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--b", default=0.1, show_default=True, help="Penalty of an error not tolerated.")
@click.option("--p", default=0.0, show_default=True, help="Penalty of a slow-down.")
@click.option(
    "--by",
    "groupings",
    multiple=True,
    type=click.Choice(["time", "ops", "dtype", "domain", "library"]),
    help="Group the graphs too, and say on which each candidate wins and loses (repeatable).",
)
@click.option("--suite", "suite_name", help="What was measured, for --by; the run's own if known.")
@click.option("--json", "as_json", is_flag=True, help="Print the scores as JSON.")
def bench_score(path: Path, b: float, p: float, groupings: tuple[str, ...],
                suite_name: str | None, as_json: bool) -> None:  # fmt: skip
    """Score the trials in PATH anew: a run folder, or a JSON-lines file.

    A line needs task, graph, status, smallest_t and speedup; candidate is optional.
    """
    from dataclasses import asdict

    from passnet.bench.groups import BY_TIME, group_rows
    from passnet.bench.run import suite_of_run
    from passnet.bench.scores import as_json as to_json
    from passnet.bench.scores import read_rows, score_rows
    from passnet.report.tables import group_table

    rows = read_rows(path)
    scores = score_rows(rows, b, p)
    suite = open_suite(suite_name, ()) if suite_name else None
    if suite is None and set(groupings) - {BY_TIME}:
        suite = suite_of_run(path)
    groups = {by: group_rows(rows, by, suite) for by in dict.fromkeys(groupings)}
    if as_json:
        grouped = {by: [asdict(item) for item in items] for by, items in groups.items()}
        print_json({**to_json(scores, b, p), **({"groups": grouped} if groups else {})})
        return
    print_totals(scores)
    print_tables([group_table(by, items) for by, items in groups.items()])


@bench.command("show")
@click.argument("what")
@task_option
@click.option("--svg", type=click.Path(path_type=Path), help="Folder for a picture of each graph.")
def bench_show(what: str, tasks: tuple[str, ...], svg: Path | None) -> None:
    """Print WHAT: the tables of a run folder, or the tasks of a suite.

    Of a run: one table a task, and the total. Of a suite: ops, graphs and arguments of each task;
    with --svg its graphs are drawn.
    """
    from passnet.bench.files import RUN_FILE, TRIALS_FILE
    from passnet.bench.run import read_trials
    from passnet.bench.scores import read_rows, score_rows

    path = Path(what)
    if not (path / RUN_FILE).exists() and not (path / TRIALS_FILE).exists():
        try:
            suite = open_suite(what, tasks)
        except InputError as cause:
            if not path.is_dir():
                raise
            raise InputError(
                f"{path}: holds no {TRIALS_FILE} of a run, and no suite: {cause}"
            ) from cause
        show_suite(suite, svg)
        return
    if svg is not None:
        raise InputError(f"{path}: a run folder has no graphs to draw; give the suite")
    scores = score_rows(read_rows(path))
    trials = [item for item in read_trials(path / TRIALS_FILE) if not tasks or item.task in tasks]
    print_tasks(trials)
    print_totals(scores)
    print_failures(trials)


for command in (list_command, admit_command, make_command):
    bench.add_command(command)
