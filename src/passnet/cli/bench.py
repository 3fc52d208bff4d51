"""`passnet bench`: measure candidates over a suite, score and show runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from passnet.cli import options as opt
from passnet.cli import suite as suites
from passnet.cli.exits import fail, fail_below
from passnet.cli.output import print_json, print_notes, print_tables
from passnet.errors import InputError

if TYPE_CHECKING:
    from passnet.bench.scores import CandidateScore
    from passnet.core.jobs.run_plan import RunShard
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.suite.suite import Suite
    from passnet.judge.trial import Trial


@click.group()
def bench() -> None:
    """Measure candidates over a suite, score and show runs."""


@bench.command("run")
@opt.suite
@opt.option("--candidate", "What to measure: eager, null, inductor, inductor-precise (with the "
            "roundings of eager torch), aoti (a package of AOTInductor), or the path of a pass "
            "folder or of a folder with one for each task; then @direct to call the rewritten "
            "graph without torch.compile, @guarded to call it behind checks of our own, @inductor "
            "to compile what passes leave (repeatable).",
            "candidates", multiple=True, required=True)  # fmt: skip
@opt.held_out
@opt.out("The run folder")
@opt.resume
@opt.flag("--retry", "With --resume, measure unstable trials again.")
@opt.shard("tasks")
@opt.parts("run")
@opt.executor_name
@opt.jobs("Tasks", default=1)
@opt.judging("open", seed="the inputs")
@opt.count("--memory-mib", "The most memory of a worker, in MiB.", default=8192)
@opt.amount("--compile-timeout", "The most seconds for loading a candidate and for its first call.",
            "compile_timeout_s", default=180.0)  # fmt: skip
@opt.amount("--call-timeout", "The most seconds for any later call.", "call_timeout_s",
            default=30.0)  # fmt: skip
@opt.flag("--require-sandbox", "Refuse to run if nothing confines candidate code.")
@opt.fail_under
@opt.json
@opt.flag("--brief", "Print the totals only, without a table for each task.")
def bench_run(suite: Suite, candidates: tuple[str, ...], held_out: Suite | None, out: Path,
              resume: bool, retry: bool, shard: RunShard, taken: tuple[Path, ...], executor: str,
              jobs: int, sandbox: Sandbox, require_sandbox: bool, fail_under: float | None,
              as_json: bool, brief: bool, **options: Any) -> None:  # fmt: skip
    """Judge and time candidates on every graph of a suite, and write the run to a folder.

    While one task is timed, nothing else runs on its machine. Exits with 0 if it could measure,
    whatever the outcome; with 1 if no trial could be compiled and run, or an AS is below
    --fail-under.
    """
    import time

    from passnet.bench.cluster import JUDGES
    from passnet.bench.files import FIGURE_FILE, RUN_FILE, SCORES_FILE, TABLES_FILE, TRIALS_FILE
    from passnet.bench.run import run_suite
    from passnet.bench.scores import ALL_UNSTABLE, read_rows, untimed_candidates
    from passnet.bench.scores import as_json as to_json
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.core.terminal.progress import progress
    from passnet.judge.desk.candidates import parse_candidate
    from passnet.judge.protocol.messages import WorkerLimits
    from passnet.judge.score.status import NOT_RUN
    from passnet.pages.tables.results import write_results
    from passnet.pages.tables.tables import phase_table

    entries = [parse_candidate(text, suite.tasks) for text in candidates]
    if require_sandbox and sandbox.name == "none":
        raise InputError(f"no sandbox, but --require-sandbox: {sandbox.reason}")
    notes = [*suite.notes, *(note for entry in entries for note in entry.notes)]
    print_notes(notes, sandbox if any(entry.folder for entry in entries) else None)
    limits = WorkerLimits(options["memory_mib"])
    timeouts = opt.picked(options, ("compile_timeout_s", "call_timeout_s"))
    settings = opt.run_settings(sandbox, options, limits=limits, **timeouts)
    start = time.monotonic()
    num_graphs = sum(len(task.graphs) for task in suite.tasks if shard.has(task.name))
    with progress(f"judging {suite.name}", num_graphs) as step:
        trials = run_suite(suite, entries, settings, out, RunPlan(resume=resume, progress=step, num_workers=jobs, retry=retry, shard=shard, parts=taken), held_out=held_out, judges=JUDGES[executor])  # fmt: skip
    wall_s = time.monotonic() - start
    scores = write_results(out)
    untimed = untimed_candidates(read_rows(out))
    print_notes(f"{name}: {ALL_UNSTABLE}" for name in untimed)
    if as_json:
        print_json(to_json(scores))
    else:
        _print_run(scores, trials, brief)
        print_tables([phase_table(trials, wall_s)])
        files = (RUN_FILE, TRIALS_FILE, SCORES_FILE, TABLES_FILE, FIGURE_FILE)
        click.echo(f"written to {out}: {', '.join(files)}")
    if all(trial.status in NOT_RUN for trial in trials):
        fail(f"none of {len(trials)} trials could be compiled and run; {out} says why")
    fail_below(fail_under, scores, untimed)


def _print_run(scores: list[CandidateScore], trials: list[Trial], brief: bool = False) -> None:
    """The tables of a run, and a line for each kind of failure."""
    from passnet.pages.tables.tables import failure_lines, task_overview, task_tables, total_table

    by_task = [] if brief else task_tables(trials)
    print_tables([*by_task, task_overview(scores), total_table(scores)])
    for line in failure_lines(trials):
        click.echo(line)


@bench.command("score")
@click.argument("path", type=opt.PATH)
@opt.amount("--b", "The factor of an error that is not tolerated, above 0 and at most 1.",
            default=0.1, type=opt.FiniteRange(high=1, min_open=True))  # fmt: skip
@opt.least("--p",
           "The penalty of a slow-down: a speedup s below 1 counts as s to the power of p + 1.",
           default=0.0)  # fmt: skip
@opt.choice("--by", ["time", "ops", "dtype", "domain", "library"], "Also group the graphs by this, "
            "and print on which groups each candidate wins and loses (repeatable).", "groupings",
            multiple=True)  # fmt: skip
@opt.option("--suite", "The suite that was measured, which --by needs; by default the one that the "
            "run folder names.", "suite", callback=opt.open_suite, metavar="SUITE")  # fmt: skip
@opt.fail_under
@opt.json
def bench_score(path: Path, b: float, p: float, groupings: tuple[str, ...], suite: Suite | None,
                fail_under: float | None, as_json: bool) -> None:  # fmt: skip
    """Score the trials in PATH again: a run folder, or a JSON-lines file.

    A line needs the fields task, graph, status, smallest_t and speedup; candidate is optional.
    """
    from dataclasses import asdict

    from passnet.bench.groups import BY_TIME, group_rows
    from passnet.bench.run_record import suite_of_run
    from passnet.bench.scores import ALL_UNSTABLE, read_rows, score_rows, untimed_candidates
    from passnet.bench.scores import as_json as to_json
    from passnet.pages.tables.tables import group_table, task_overview, total_table

    rows = read_rows(path)
    scores = score_rows(rows, b, p)
    untimed = untimed_candidates(rows)
    print_notes(f"{name}: {ALL_UNSTABLE}" for name in untimed)
    if suite is None and set(groupings) - {BY_TIME}:
        suite = suite_of_run(path)
    groups = {by: group_rows(rows, by, suite) for by in dict.fromkeys(groupings)}
    if as_json:
        grouped = {by: [asdict(group) for group in parts] for by, parts in groups.items()}
        print_json({**to_json(scores, b, p), **({"groups": grouped} if groups else {})})
    else:
        grouped_tables = [group_table(by, parts) for by, parts in groups.items()]
        print_tables([task_overview(scores), total_table(scores), *grouped_tables])
    fail_below(fail_under, scores, untimed)


@bench.command("show")
@click.argument("run_or_suite", metavar="RUN")
@opt.task
@suites.svg_option
@click.pass_context
def bench_show(ctx: click.Context, run_or_suite: str, tasks: tuple[str, ...],
               svg: Path | None) -> None:  # fmt: skip
    """Print the tables of the run folder RUN: one for each task, and the totals.

    For one version, RUN may also be a suite: an alias of `passnet suite show`, with its --svg.
    """
    from passnet.bench.files import RUN_FILE, TRIALS_FILE
    from passnet.bench.run_record import run_folder
    from passnet.bench.scores import read_rows, score_rows
    from passnet.core.records.serialise import has_lines
    from passnet.judge.suite.suite import load_suite

    path = Path(run_or_suite)
    if not (path / RUN_FILE).exists() and not has_lines(path / TRIALS_FILE):
        try:
            suite = load_suite(run_or_suite)
        except InputError as cause:
            if not path.is_dir():
                raise
            raise InputError(
                f"{path}: holds no {TRIALS_FILE} of a run, and no suite: {cause}"
            ) from cause
        ctx.invoke(suites.show_command, suite=suite, tasks=tasks, svg=svg)
        return
    if svg is not None:
        raise InputError(f"{path}: a run folder has no graphs to draw; give the suite")
    trials = list(run_folder(path).records().values())
    _print_run(
        score_rows(read_rows(path)),
        [trial for trial in trials if not tasks or trial.task in tasks],
    )


for old_name, command in (
    ("list", suites.list_command),
    ("make", suites.make_command),
    ("admit", suites.check_command),
):
    bench.add_command(suites.alias(command, old_name))
