"""`passnet bench`: measure candidates over a suite, score and show runs."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from passnet.cli.terminal import fields as opt
from passnet.cli.terminal.exits import fail, fail_below
from passnet.cli.terminal.groups import ExtensibleGroup
from passnet.cli.terminal.output import print_json, print_notes, print_result, print_tables, say
from passnet.errors import InputError, check_exists, no_such

if TYPE_CHECKING:
    from collections.abc import Mapping

    from passnet.bench.scores import CandidateScore
    from passnet.core.jobs.run_plan import RunPlan
    from passnet.judge.processes.sandbox import Sandbox
    from passnet.judge.settings import RunSettings
    from passnet.judge.suite.suite import Suite
    from passnet.judge.trial import Trial


@click.group(cls=ExtensibleGroup)
def bench() -> None:
    """Measure candidates over a suite, score and show runs."""


@dataclass(frozen=True, kw_only=True)
class BenchRunOptions:
    """Options of `passnet bench run`."""

    suite: Suite = opt.suite()

    candidates: tuple[str, ...] = opt.field(option="candidate", complete=opt.completion.candidates)
    """Measure this candidate: eager, null, inductor, inductor-precise (with the roundings of eager
    torch), aoti (a package of AOTInductor), a pass folder, or a folder with one for each task. Add
    @direct to call the rewritten graph without torch.compile, @guarded to call it behind passnet's
    own checks, @inductor to compile what the passes leave, @inlined to inline them too.
    """

    held_out: Suite | None = opt.shared("held_out")

    out: Path
    """Write the run to this folder."""

    plan: RunPlan = opt.plan("resume", "retry", "shard", "parts", "executor", "num_workers", jobs=1)

    settings: RunSettings = opt.judging(*opt.LIMITS)

    sandbox: Sandbox = opt.shared("sandbox")

    require_sandbox: bool = False
    """Refuse to run without a sandbox."""

    fail_under: float | None = opt.shared("fail_under")

    verbose: bool = False
    """Print the tables of single graphs too."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("run", bench)
def bench_run(options: BenchRunOptions) -> None:
    """Judge and time candidates on every graph of a suite, and write the run to a folder.

    The items of --jobs and --shard are tasks; nothing else runs on the machine while one is timed.
    Exits with 0 if it could measure, whatever the outcome; with 1 if no trial could be compiled and
    run, or an AS is below --fail-under.
    """
    from passnet.bench.cluster import JUDGES
    from passnet.bench.run import run_suite
    from passnet.bench.run_record import (
        FIGURE_FILE,
        RUN_FILE,
        SCORES_FILE,
        TABLES_FILE,
        TRIALS_FILE,
    )
    from passnet.bench.scores import ALL_UNSTABLE, as_json, read_rows, untimed_candidates
    from passnet.bench.shares import shares_for
    from passnet.core.terminal.progress import progress
    from passnet.judge.desk.candidates import distinct, parse_candidate
    from passnet.judge.score.status import NOT_RUN
    from passnet.pages.tables.results import write_results
    from passnet.pages.tables.tables import phase_table, task_tables

    suite, sandbox, plan, out = options.suite, options.sandbox, options.plan, options.out
    parsed = [parse_candidate(text, suite.tasks) for text in options.candidates]
    entries, same = distinct(parsed)
    if options.require_sandbox and sandbox.name == "none":
        raise InputError(f"no sandbox, but --require-sandbox: {sandbox.reason}")
    notes = [*suite.notes, *same, *(note for entry in entries for note in entry.notes)]
    print_notes(notes, sandbox if any(entry.folder for entry in entries) else None)
    settings = replace(options.settings, sandbox=sandbox.name)
    start = time.monotonic()
    num_graphs = sum(len(task.graphs) for task in suite.tasks if plan.shard.has(task.name))
    with progress(f"judging {suite.name}", num_graphs) as step:
        trials = run_suite(
            suite,
            entries,
            settings,
            out,
            replace(plan, progress=step),
            options.held_out,
            JUDGES["ray" if plan.is_on_ray else "local"],
        )
    wall_s = time.monotonic() - start
    scores, shares = write_results(out), shares_for(out)
    untimed = untimed_candidates(read_rows(out))
    print_notes(f"{name}: {ALL_UNSTABLE}" for name in untimed)
    if options.json:
        print_json(as_json(scores, shares=shares))
    else:
        _print_run(scores, trials, shares, options.wide)
        more = task_tables(trials) if options.verbose else ()
        print_tables([phase_table(trials, wall_s), *more], options.wide)
        files = (RUN_FILE, TRIALS_FILE, SCORES_FILE, TABLES_FILE, FIGURE_FILE)
        say(f"written to {out}: {', '.join(files)}")
    if all(trial.status in NOT_RUN for trial in trials):
        fail(f"none of {len(trials)} trials could be compiled and run; {out} says why")
    fail_below(options.fail_under, scores, untimed)


def _print_run(
    scores: list[CandidateScore], trials: list[Trial], shares: Mapping[str, float], wide: bool
) -> None:
    """Print the scores of a run, and a line for each kind of failure."""
    from passnet.pages.tables.tables import failure_lines, task_overview, total_table

    print_tables([total_table(scores, shares), task_overview(scores)], wide)
    for line in failure_lines(trials):
        say(line)


@dataclass(frozen=True, kw_only=True)
class BenchApplyOptions:
    """Options of `passnet bench apply`."""

    passes: tuple[Path, ...] = opt.argument(nargs=-1)

    candidate: str | None = None
    """Take this candidate, where PASSES is a run of several."""

    suite: Suite = opt.suite()

    graphs: Path = Path("captures")
    """Find the nets of the tasks in this folder of captured graphs."""

    nets: int = opt.field(1, least=1)
    """Try each pass folder in this many nets of its task."""

    max_mib: float = opt.field(64.0, option="max-mib")
    """Leave out nets whose arguments, weights among them, are larger, in MiB."""

    out: Path
    """Write the run to this folder."""

    plan: RunPlan = opt.plan("resume", "retry", jobs=1)

    settings: RunSettings = opt.judging(*opt.LIMITS)

    sandbox: Sandbox = opt.shared("sandbox")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("apply", bench)
def bench_apply(options: BenchApplyOptions) -> None:
    """Put the passes in PASSES into the nets that their tasks came from.

    PASSES holds a pass folder for each task, under its name, or is a run, which then keeps the
    result for its page; several are told apart by the names of their folders. Inductor compiles
    each net with and without them, in the judge's sandbox; all are timed in turns, and so are all
    on the task. Exits with 1 if no net could be timed.
    """
    from dataclasses import asdict

    from passnet.bench.in_nets import (
        IN_NETS_FILE,
        PassesInNets,
        apply_in_nets,
        candidates_in,
        find_places,
        keep_in_nets,
        pass_folders,
    )
    from passnet.bench.run_record import RUN_FILE
    from passnet.core.terminal.progress import progress
    from passnet.pages.tables.tables import net_table

    print_notes(options.suite.notes, options.sandbox)
    settings = replace(options.settings, sandbox=options.sandbox.name)
    out = options.out
    entries = candidates_in(options.passes, options.suite, options.candidate)
    folders = {name: pass_folders(options.suite, entry) for name, (_, entry) in entries.items()}
    tasks = [
        task for task in options.suite.tasks if any(task.name in own for own in folders.values())
    ]
    places, notes = find_places(tasks, options.graphs, options.nets, options.max_mib)
    print_notes([*(note for _, entry in entries.values() for note in entry.notes), *notes])
    with progress("judging in nets", 2 * len(places)) as step:
        plan = replace(options.plan, progress=step)
        records = apply_in_nets(places, folders, out, settings, plan)
    for name, (path, entry) in entries.items():
        found = PassesInNets(entry.code_hash or "", tuple(records[name]), name)
        kept = [out, *([path] if (path / RUN_FILE).is_file() else [])]
        for folder in kept:
            keep_in_nets(found, folder)
        if not options.json:
            print_tables([net_table(records[name], name)], options.wide)
            say(f"written to {' and '.join(map(str, kept))}: {IN_NETS_FILE}")
    every = [(name, record) for name, own in records.items() for record in own]
    if options.json:
        print_json([{"candidate": name, **asdict(record)} for name, record in every])
    if not any(record.speedup for _, record in every):
        fail(f"none of {len(places)} nets could be timed; {out} says why")


@dataclass(frozen=True, kw_only=True)
class BenchScoreOptions:
    """Options of `passnet bench score`."""

    path: Path = opt.argument()

    b: float = opt.field(0.1, most=1)
    """Multiply a graph's score by this, above 0 and at most 1, for an error beyond tolerance."""

    p: float = 0.0
    """Penalise a slow-down: a speedup s below 1 counts as s to the power of p + 1."""

    groupings: tuple[str, ...] = opt.field(
        (), option="by", choices=("time", "ops", "dtype", "domain", "library")
    )
    """Also group the graphs by this, and print where each candidate wins and loses."""

    suite: Suite | None = opt.field(
        None,
        metavar="SUITE",
        type=click.STRING,
        convert=opt.open_suite,
        complete=opt.completion.suites,
    )
    """Take what --by needs from this suite; by default the one that the run folder names."""

    shares: Path | None = None
    """Weigh tasks by this file of `passnet suite weigh`; by default by the shipped shares."""

    fail_under: float | None = opt.shared("fail_under")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("score", bench)
def bench_score(options: BenchScoreOptions) -> None:
    """Score the trials in PATH again: a run folder, or a JSON-lines file.

    A line needs the fields task, graph, status, smallest_t and speedup; candidate is optional.
    """
    from dataclasses import asdict

    from passnet.bench.groups import BY_TIME, group_rows
    from passnet.bench.run_record import suite_of_run
    from passnet.bench.scores import ALL_UNSTABLE, as_json, read_rows, score_rows
    from passnet.bench.scores import untimed_candidates as untimed_of
    from passnet.bench.shares import shares_for
    from passnet.pages.tables.tables import group_table, task_overview, total_table

    rows = read_rows(options.path)
    scores = score_rows(rows, options.b, options.p)
    untimed = untimed_of(rows)
    shares = shares_for(options.path, options.suite, options.shares)
    print_notes(f"{name}: {ALL_UNSTABLE}" for name in untimed)
    suite = options.suite
    if suite is None and set(options.groupings) - {BY_TIME}:
        suite = suite_of_run(options.path)
    groups = {by: group_rows(rows, by, suite) for by in dict.fromkeys(options.groupings)}
    grouped = {by: [asdict(group) for group in parts] for by, parts in groups.items()}
    scored = as_json(scores, options.b, options.p, shares)
    tables = [total_table(scores, shares), task_overview(scores)]
    tables += [group_table(by, parts) for by, parts in groups.items()]
    value = {**scored, **({"groups": grouped} if groups else {})}
    print_result(options.json, value, tables=tables, wide=options.wide)
    fail_below(options.fail_under, scores, untimed)


@dataclass(frozen=True, kw_only=True)
class BenchImportOptions:
    """Options of `passnet bench import`."""

    folder: Path = opt.argument()

    name: str
    """Show the scores under this name."""

    out: Path
    """Write the scores to this folder."""

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("import", bench)
def bench_import(options: BenchImportOptions) -> None:
    """Read scores that somebody published, and keep them to be shown beside those measured here.

    FOLDER holds a folder for each task, with the task's AS in score.txt. `passnet report` shows
    them as published: without intervals, and in a table of their own.
    """
    from passnet.bench.published import PUBLISHED_FILE, import_published
    from passnet.pages.tables.tables import published_table

    published = import_published(options.folder, options.name, options.out)
    lines, tables = [f"written to {options.out}: {PUBLISHED_FILE}"], [published_table(published)]
    print_result(options.json, published, lines, tables, options.wide)


@dataclass(frozen=True, kw_only=True)
class BenchShowOptions:
    """Options of `passnet bench show`."""

    run: Path = opt.argument()

    tasks: tuple[str, ...] = opt.shared("tasks")

    json: bool = opt.shared("json")

    wide: bool = opt.shared("wide")


@opt.command("show", bench)
def bench_show(options: BenchShowOptions) -> None:
    """Print the tables of the run folder RUN: the totals, and one for each task.

    Of published scores, print the total. JSON has the scores and the trials.
    """
    from passnet.bench.published import PUBLISHED_FILE, read_published
    from passnet.bench.run_record import RUN_FILE, TRIALS_FILE, run_folder
    from passnet.bench.scores import as_json, read_rows, score_rows
    from passnet.bench.shares import shares_for
    from passnet.pages.tables.tables import published_table, task_tables

    if (options.run / PUBLISHED_FILE).is_file():
        published = read_published(options.run)
        tables = [published_table(published)]
        print_result(options.json, published, tables=tables, wide=options.wide)
        return
    check_exists(options.run)
    run = run_folder(options.run)
    if not (options.run / RUN_FILE).exists() and not run.records():
        raise InputError(
            f"{options.run}: holds no {TRIALS_FILE} of a run; `passnet suite show` prints a suite"
        )
    trials, rows = [*run.records().values()], read_rows(options.run)
    shares = shares_for(options.run)
    if options.tasks:
        known = {row.task: None for row in rows}
        for name in options.tasks:
            if name not in known:
                raise InputError(f"{options.run} has {no_such('task', name, known)}")
        trials = [trial for trial in trials if trial.task in options.tasks]
        rows = [row for row in rows if row.task in options.tasks]
        shares = {name: share for name, share in shares.items() if name in options.tasks}
    scores = score_rows(rows)
    if options.json:
        print_json({**as_json(scores, shares=shares), "trials": trials})
        return
    _print_run(scores, trials, shares, options.wide)
    print_tables(task_tables(trials), options.wide)
