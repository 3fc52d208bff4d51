"""A run: every candidate on every graph of a suite, each trial on disk as soon as it is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import TypeAlias, TypeVar

from passnet.bench.candidates import CandidateEntry
from passnet.bench.environment import Environment, describe_environment
from passnet.bench.files import RUN_FILE, TRIALS_FILE
from passnet.errors import InputError, MeasureError, WorkerError
from passnet.jobs.run_folder import last_records
from passnet.judge.candidate import Candidate
from passnet.judge.findings import Finding
from passnet.judge.held_out import held_out_findings
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.limitations import NOT_COVERED
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import SandboxName, find_sandbox
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.trial import JudgeSettings, Trial
from passnet.judge.verdict import Evidence, decide
from passnet.records.serialise import (
    SCHEMA_VERSION,
    LineWriter,
    encode,
    make_folder,
    read_json,
    write_json,
    write_whole,
)
from passnet.suite.suite import Suite, SuiteGraph, Task, load_suite, shipped_suites

T = TypeVar("T")
Findings: TypeAlias = dict[str, tuple[Finding, ...]]
"""What was found out about each candidate."""

MAX_RESTARTS = 3
SAME_ENVIRONMENT = ("cpu", "python", "torch", "passnet", "compiler", "gpu")
"""What must not change between the parts of one run."""


@dataclass(frozen=True)
class RunSettings:
    """What a run measures with; two runs with the same settings can be one.

    Args:
        judge: how graphs are judged.
        num_threads: threads of every worker.
        sandbox: what confines candidate code; see `find_sandbox`.
        held_out: the content hash of the suite of held-out shapes, if any.
    """

    judge: JudgeSettings = field(default_factory=JudgeSettings)
    num_threads: int = 1
    sandbox: SandboxName = "none"
    held_out: str | None = None


@dataclass(frozen=True)
class BenchRunInfo:
    """The record of a run, in `run.json`; `not_covered` says what its judge cannot promise."""

    schema_version: int
    suite: str
    suite_hash: str
    candidates: tuple[Candidate, ...]
    code_hashes: dict[str, str]
    settings: RunSettings
    environment: Environment
    not_covered: tuple[str, ...] = NOT_COVERED


TrialProgress = Callable[[SuiteGraph, Sequence[Trial]], None]
"""Called after every graph with its new trials."""


def run_suite(
    suite: Suite,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    out: Path,
    resume: bool = False,
    progress: TrialProgress | None = None,
    held_out: Suite | None = None,
    num_workers: int = 1,
    retry: bool = False,
) -> list[Trial]:
    """All trials of a suite under some candidates, measured or found finished in `out`.

    Every trial is written to `out/trials.jsonl` and flushed when it is known. A run that was killed
    goes on with `resume`; finished trials are neither lost nor repeated.

    Args:
        suite: the graphs.
        entries: the candidates.
        settings: how to measure.
        out: the run folder.
        resume: go on with what `out` holds; candidates may have been added.
        progress: told about every graph.
        held_out: shapes of the same tasks that no author has seen; see `judge.held_out`.
        num_workers: how many tasks are worked on at a time; nothing else runs while one is timed.
        retry: measure the trials of `out` again that were unstable.

    Raises:
        InputError: `out` holds a run and `resume` is off, or another run than this one.
        MeasureError: our own machinery fails again and again.
    """
    settings = replace(settings, held_out=held_out.content_hash if held_out else None)
    find_device(settings.judge.device)
    info = run_info(suite, entries, settings)
    _prepare(out, info, resume)
    path = out / TRIALS_FILE
    if retry and path.exists():
        _forget_unstable(path)
    known = {item.name for task in suite.tasks for item in task.graphs}
    done = [item for item in read_trials(path) if item.graph in known]
    finished = {(item.graph, item.candidate) for item in done}
    sandbox = find_sandbox(settings.sandbox)
    keeping = threading.Lock()
    inspected = InspectedFolders(settings.judge.rules)
    with LineWriter(path) as writer, ExitStack() as stack:
        pools = [
            stack.enter_context(ParentPool(settings.num_threads, sandbox, settings.judge.device))
            for _ in range(num_workers)
        ]
        free: SimpleQueue[ParentPool] = SimpleQueue()
        for pool in pools:
            free.put(pool)

        def work_on(task: Task) -> None:
            parents = free.get()
            unseen = held_out_graphs(held_out, task.name)
            for item, trials in judge_task(
                parents, task, entries, settings, unseen, finished, inspected
            ):
                with keeping:
                    for trial in trials:
                        writer.write(trial)
                    done.extend(trials)
                    if progress is not None:
                        progress(item, trials)
            free.put(parents)

        threads = stack.enter_context(ThreadPoolExecutor(num_workers))
        try:
            for ended in as_completed(threads.submit(work_on, task) for task in suite.tasks):
                ended.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for pool in pools:
                pool.close()
            raise
    return done


def held_out_graphs(held_out: Suite | None, task: str) -> list[SuiteGraph]:
    """The graphs of a task in a suite of held-out shapes."""
    tasks = held_out.tasks if held_out else ()
    return [graph for other in tasks if other.name == task for graph in other.graphs]


def judge_task(
    parents: ParentPool,
    task: Task,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    unseen: Sequence[SuiteGraph],
    finished: Collection[tuple[str, str]],
    inspected: InspectedFolders,
) -> Iterator[tuple[SuiteGraph, list[Trial]]]:
    """The trials of a task that are not finished, graph by graph."""
    missing = {
        item.name: [entry for entry in entries if (item.name, entry.name) not in finished]
        for item in task.graphs
    }
    needed = {entry.name for absent in missing.values() for entry in absent}
    concerned = [entry for entry in entries if entry.name in needed]
    if concerned:
        parents.start(entry.template for entry in concerned)
    findings = _hold_out(parents, unseen, concerned, settings, inspected)
    for item in task.graphs:
        yield item, list(_judge(parents, item, missing[item.name], settings, findings, inspected))


def read_trials(path: Path) -> list[Trial]:
    """The finished trials of a run, the last record of each; a torn last line is left out."""
    found = last_records(path, Trial, lambda trial: (trial.graph, trial.candidate))
    return list(found.values())


def _forget_unstable(path: Path) -> None:
    """Take the unstable trials out of a run's records."""
    kept = [item for item in read_trials(path) if item.status != "unstable"]
    write_whole(path, b"".join(encode(item) + b"\n" for item in kept))


def suite_of_run(out: Path) -> Suite | None:
    """The suite that was measured in a run folder; None where only a name of it is known."""
    path = out / RUN_FILE
    if not path.exists():
        return None
    info = read_json(path, BenchRunInfo)
    if info.suite not in shipped_suites():
        return None
    suite = load_suite(info.suite)
    return suite if suite.content_hash == info.suite_hash else None


def run_info(
    suite: Suite, entries: Sequence[CandidateEntry], settings: RunSettings
) -> BenchRunInfo:
    """The record of a run that begins here and now.

    Raises:
        InputError: a candidate is given twice.
    """
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise InputError("a candidate is given twice")
    return BenchRunInfo(
        SCHEMA_VERSION,
        suite.name,
        suite.content_hash,
        tuple(entry.template for entry in entries),
        {entry.name: entry.code_hash for entry in entries if entry.code_hash},
        settings,
        describe_environment(kind_of(settings.judge.device) == "cuda"),
    )


def _prepare(out: Path, info: BenchRunInfo, resume: bool) -> None:
    """Write `run.json`, or check that the run in `out` is this one."""
    path = out / RUN_FILE
    if not path.exists():
        if (out / TRIALS_FILE).exists():
            raise InputError(f"{out}: holds {TRIALS_FILE} but no {RUN_FILE}; choose another folder")
        make_folder(out)
        write_json(path, info)
        return
    if not resume:
        raise InputError(
            f"{out}: already holds a run; add --resume to go on, or choose another --out"
        )
    old = read_json(path, BenchRunInfo)
    if old.schema_version != SCHEMA_VERSION:
        raise InputError(
            f"{path}: its records have version {old.schema_version}, this passnet writes version "
            f"{SCHEMA_VERSION}; choose another --out"
        )
    for what in ("suite_hash", "settings"):
        if getattr(old, what) != getattr(info, what):
            raise InputError(
                f"{out}: holds a run with another {what.replace('_hash', '')}; "
                "choose another --out, or give the settings of that run"
            )
    for what in SAME_ENVIRONMENT:
        before, now = getattr(old.environment, what), getattr(info.environment, what)
        if before != now:
            raise InputError(
                f"{out}: was measured with {what} {before}, and here it is {now}; times of both "
                "cannot be in one run, choose another --out"
            )
    for name, code_hash in info.code_hashes.items():
        if old.code_hashes.get(name, code_hash) != code_hash:
            raise InputError(
                f"{out}: the files of {name} have changed since that run; choose another --out"
            )
    added = tuple(item for item in info.candidates if item not in old.candidates)
    merged = BenchRunInfo(
        old.schema_version,
        old.suite,
        old.suite_hash,
        old.candidates + added,
        {**old.code_hashes, **info.code_hashes},
        old.settings,
        old.environment,
    )
    write_json(path, merged)


def _judge(
    parents: ParentPool,
    item: SuiteGraph,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    findings: Findings,
    inspected: InspectedFolders,
) -> Iterator[Trial]:
    """The trials of the candidates on one graph."""
    candidates = []
    for entry in entries:
        candidate = entry.for_task(item.task)
        if candidate is None:
            text = f"{entry.name} holds no pass folder for task {item.task}"
            evidence = Evidence(item.task, item.name, entry.name, failure=("no_match", text))
            yield decide(evidence, settings.judge)
        else:
            candidates.append(candidate)
    if candidates:
        yield from _again(
            parents,
            item.name,
            lambda: judge_graph(parents, item, candidates, settings.judge, inspected, findings),
        )


def _hold_out(
    parents: ParentPool,
    graphs: Sequence[SuiteGraph],
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    inspected: InspectedFolders,
) -> Findings:
    """What the candidates that bring code do on held-out graphs of a task."""
    if not graphs or not entries:
        return {}
    made = [entry.for_task(graphs[0].task) for entry in entries]
    candidates = [item for item in made if item is not None and item.passes is not None]
    return _again(
        parents,
        graphs[0].task,
        lambda: held_out_findings(parents, graphs, candidates, settings.judge, inspected),
    )


def _again(parents: ParentPool, what: str, action: Callable[[], T]) -> T:
    """The result of an action, tried again with new processes where our own machinery fails."""
    for attempt in range(MAX_RESTARTS):
        try:
            return action()
        except WorkerError as cause:
            parents.drop()
            if attempt == MAX_RESTARTS - 1:
                raise MeasureError(
                    f"cannot measure {what}: {cause} ({MAX_RESTARTS} attempts)"
                ) from cause
    raise AssertionError("the last attempt returns or raises")
