"""A run: every candidate on every graph of a suite, each trial on disk as soon as it is known."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar

from passnet.bench.candidates import CandidateEntry
from passnet.bench.environment import Environment, describe_environment
from passnet.bench.files import RUN_FILE, TRIALS_FILE
from passnet.errors import InputError, MeasureError, WorkerError, boundary
from passnet.jobs.actors import this_machine
from passnet.jobs.run_folder import RunFolder
from passnet.jobs.shards import WHOLE, RunShard
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.findings import Finding, finding
from passnet.judge.held_out import held_out_findings
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.limitations import NOT_COVERED
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import SandboxName, find_sandbox
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.settings import JudgeSettings
from passnet.judge.trial import Trial
from passnet.judge.verdict import Evidence, decide
from passnet.records.serialise import SCHEMA_VERSION
from passnet.score.status import Status
from passnet.suite.suite import Suite, SuiteGraph, Task, load_suite, shipped_suites

T = TypeVar("T")

MAX_ATTEMPTS = 3
"""How often something is measured, each time with new processes, before the run is given up."""

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


@dataclass(frozen=True)
class JudgeOrder:
    """What the judges of a run are told.

    `finished` has the machine of every trial that is known, by graph and candidate; `environment`
    is what the run is measured with.
    """

    entries: tuple[CandidateEntry, ...]
    settings: RunSettings
    held_out: Suite | None
    finished: Mapping[tuple[str, str], str | None]
    environment: Environment


Recorder: TypeAlias = Callable[[str, list[Trial]], None]
"""Takes the name of a graph that is done, and its new trials."""


@dataclass(frozen=True)
class Judges:
    """Where tasks are judged.

    Args:
        environment: what is measured with there.
        judge: judges tasks as ordered, so many at a time, and hands over their trials.
    """

    environment: Callable[[RunSettings], Environment]
    judge: Callable[[JudgeOrder, Sequence[Task], int, Recorder], None]


def environment_here(settings: RunSettings) -> Environment:
    """The environment of this process.

    Raises:
        InputError: this machine lacks the device that is judged on.
    """
    find_device(settings.judge.device)
    return describe_environment(kind_of(settings.judge.device) == "cuda")


def judge_here(order: JudgeOrder, tasks: Sequence[Task], num_workers: int, done: Recorder) -> None:
    """Judge tasks in processes of this machine; nothing else runs while one is timed."""
    settings, sandbox = order.settings, find_sandbox(order.settings.sandbox)
    inspected = InspectedFolders(settings.judge.rules)
    idle_parents: SimpleQueue[ParentPool] = SimpleQueue()

    def work_on(task: Task) -> None:
        parents = idle_parents.get()
        unseen = held_out_graphs(order.held_out, task.name)
        try:
            for graph, trials in judge_task(
                parents, task, order.entries, settings, unseen, order.finished, inspected
            ):
                done(graph.name, trials)
        finally:  # other tasks wait for them, even those that are about to be given up
            idle_parents.put(parents)

    with ExitStack() as stack:
        pools = [
            stack.enter_context(ParentPool(settings.num_threads, sandbox, settings.judge.device))
            for _ in range(num_workers)
        ]
        for pool in pools:
            idle_parents.put(pool)
        threads = stack.enter_context(ThreadPoolExecutor(num_workers))
        try:
            for future in as_completed(threads.submit(work_on, task) for task in tasks):
                future.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            for pool in pools:
                pool.close()
            raise


HERE = Judges(environment_here, judge_here)


def run_suite(
    suite: Suite,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    out: Path,
    resume: bool = False,
    progress: Callable[[str], None] | None = None,
    held_out: Suite | None = None,
    num_workers: int = 1,
    retry: bool = False,
    judges: Judges = HERE,
    shard: RunShard = WHOLE,
    taken: Sequence[Path] = (),
) -> list[Trial]:
    """All trials of a suite under some candidates, measured or read from `out`.

    Every trial is written to `out/trials.jsonl` and flushed when it is known. A run that was killed
    goes on with `resume`; finished trials are neither lost nor repeated.

    Args:
        suite: the graphs.
        entries: the candidates.
        settings: how to measure.
        out: the run folder.
        resume: go on with what `out` holds; candidates may have been added.
        progress: called with the name of every graph that is done.
        held_out: shapes of the same tasks that no author has seen; see `judge.held_out`.
        num_workers: how many tasks are worked on at a time; nothing else runs while one is timed.
        retry: measure the trials of `out` again that were unstable.
        judges: where tasks are judged: here, or on a Ray cluster, see `bench.cluster`.
        shard: the part of the tasks to work on.
        taken: folders of other parts of the same run, whose trials are taken over.

    Raises:
        InputError: `out` holds a run and `resume` is off; it or one of `taken` holds another run
            than this one; or the part has no task.
        MeasureError: our own machinery fails again and again.
    """
    settings = replace(settings, held_out=held_out.content_hash if held_out else None)
    tasks = tasks_of_part(suite, shard)
    run = run_folder(out)
    recording = threading.Lock()
    with ExitStack() as stack:
        info = run_info(suite, entries, settings, judges.environment(settings))
        others = [trial for folder in taken for trial in _trials_of_part(folder, info)]
        stack.enter_context(run.begin(info, resume, partial(_continued, out)))
        if retry:
            run.forget(lambda trial: trial.status == "unstable")
        graphs = {graph.name for task in suite.tasks for graph in task.graphs}
        trials = {key: trial for key, trial in run.records().items() if trial.graph in graphs}
        run.take(others, trials, lambda trial: trial.status != "unstable")
        record = stack.enter_context(run.recorder(len(trials)))
        finished = {key: trial.machine for key, trial in trials.items()}
        order = JudgeOrder(tuple(entries), settings, held_out, finished, info.environment)

        def done(graph: str, new_trials: list[Trial]) -> None:
            with recording:
                for trial in new_trials:
                    record(trial)
                    trials[trial.graph, trial.candidate] = trial
                if progress is not None:
                    progress(graph)

        judges.judge(order, tasks, num_workers, done)
    return list(trials.values())


def tasks_of_part(suite: Suite, shard: RunShard) -> list[Task]:
    """The tasks of a part of a run.

    Raises:
        InputError: there are none.
    """
    tasks = [task for task in suite.tasks if shard.has(task.name)]
    if not tasks:
        raise InputError(
            f"part {shard.number} of {shard.total} has no task of {suite.name}; take fewer parts"
        )
    return tasks


def _trials_of_part(folder: Path, info: BenchRunInfo) -> list[Trial]:
    """The trials of the folder of another part of a run, under its candidates.

    Raises:
        InputError: it is none.
    """
    part = run_folder(folder)
    other = part.read_info()
    if difference := _difference(other, info):
        raise InputError(f"{folder}: {difference}; it is no part of this run")
    names = {candidate.name for candidate in info.candidates}
    if not names & {candidate.name for candidate in other.candidates}:
        raise InputError(f"{folder}: has none of the candidates of this run; it is no part of it")
    return [trial for trial in part.records().values() if trial.candidate in names]


def held_out_graphs(held_out: Suite | None, task: str) -> list[SuiteGraph]:
    """The graphs of a task in a suite of held-out shapes."""
    tasks = held_out.tasks if held_out else ()
    return [graph for unseen in tasks if unseen.name == task for graph in unseen.graphs]


def judge_task(
    parents: ParentPool,
    task: Task,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    unseen: Sequence[SuiteGraph],
    finished: Collection[tuple[str, str]],
    inspected: InspectedFolders,
) -> Iterator[tuple[SuiteGraph, list[Trial]]]:
    """The trials of a task, graph by graph, but for those whose graph and candidate are finished.

    What candidates do on the unseen graphs, which were held out, counts in all their trials. One
    under which the judge itself fails, again and again and alone, has crashed.
    """
    missing = {
        graph.name: [entry for entry in entries if (graph.name, entry.name) not in finished]
        for graph in task.graphs
    }
    started = list(dict.fromkeys(entry for absent in missing.values() for entry in absent))
    if started:
        parents.start(entry.template for entry in started)
    judge = settings.judge
    findings: dict[str, tuple[Finding, ...]] = {}

    def hold_out(candidates: list[Candidate]) -> Iterable[tuple[str, tuple[Finding, ...]]]:
        return held_out_findings(parents, unseen, candidates, judge, inspected).items()

    def found_out(candidate: Candidate, text: str) -> tuple[str, tuple[Finding, ...]]:
        return candidate.name, (finding("hard_coded_shape", f"on a held-out shape: {text}"),)

    with_code = [
        candidate for candidate in _candidates(started, task.name).values() if candidate.passes
    ]
    if unseen and with_code:
        findings = dict(_apart(parents, task.name, with_code, hold_out, found_out))
    for graph in task.graphs:
        candidates = _candidates(missing[graph.name], task.name)
        trials = []
        for entry in missing[graph.name]:
            if entry.name not in candidates:
                text = f"{entry.name} holds no pass folder for task {task.name}"
                trials.append(_failed(graph, entry.name, "no_match", text, judge))
        if candidates:
            trials += _judge(parents, graph, list(candidates.values()), judge, inspected, findings)
        yield graph, [replace(trial, machine=this_machine()) for trial in trials]


def _candidates(entries: Iterable[CandidateEntry], task: str) -> dict[str, Candidate]:
    """What to judge on a task, by name; an entry without a pass folder for it is left out."""
    candidates = {entry.name: entry.for_task(task) for entry in entries}
    return {name: candidate for name, candidate in candidates.items() if candidate is not None}


def _failed(
    graph: SuiteGraph, candidate: str, status: Status, text: str, judge: JudgeSettings
) -> Trial:
    """The trial of a candidate that came to nothing."""
    return decide(Evidence(graph.task, graph.name, candidate, failure=(status, text)), judge)


def _judge(
    parents: ParentPool,
    graph: SuiteGraph,
    candidates: list[Candidate],
    judge: JudgeSettings,
    inspected: InspectedFolders,
    findings: dict[str, tuple[Finding, ...]],
) -> list[Trial]:
    """The trials of some candidates on a graph."""

    def judge_some(some: list[Candidate]) -> list[Trial]:
        return judge_graph(parents, graph, some, judge, inspected, findings)

    def crashed(candidate: Candidate, text: str) -> Trial:
        return _failed(graph, candidate.name, "crash", text, judge)

    return _apart(parents, graph.name, candidates, judge_some, crashed)


def _apart(
    parents: ParentPool,
    subject: str,
    candidates: list[Candidate],
    action: Callable[[list[Candidate]], Iterable[T]],
    crashed: Callable[[Candidate, str], T],
) -> list[T]:
    """What an action gives for some candidates at once; where our own machinery fails, for each
    alone. One under which it fails alone, while it works under the reference, made it fail.

    Raises:
        MeasureError: it fails under the reference too.
    """
    try:
        return _repeated(parents, subject, lambda: list(action(candidates)))
    except MeasureError as cause:
        _repeated(parents, subject, lambda: list(action([REFERENCE])))
        if len(candidates) == 1:
            return [crashed(candidates[0], str(cause))]
    apart = (_apart(parents, subject, [each], action, crashed) for each in candidates)
    return list(chain.from_iterable(apart))


def _repeated(parents: ParentPool, subject: str, action: Callable[[], T]) -> T:
    """The result of an action, tried again with new processes where our own machinery fails.

    Raises:
        MeasureError: it failed each time.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with boundary(WorkerError, "an error of the judge"):
                return action()
        except WorkerError as cause:
            parents.drop()
            if attempt == MAX_ATTEMPTS:
                raise MeasureError(
                    f"cannot measure {subject}: {cause} ({MAX_ATTEMPTS} attempts)"
                ) from cause
    raise AssertionError("the last attempt returns or raises")


def suite_of_run(out: Path) -> Suite | None:
    """The suite that was measured in a run folder; None where only a name of it is known."""
    if not (out / RUN_FILE).exists():
        return None
    info = run_folder(out).read_info()
    if info.suite not in shipped_suites():
        return None
    suite = load_suite(info.suite)
    return suite if suite.content_hash == info.suite_hash else None


def run_info(
    suite: Suite,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    environment: Environment,
) -> BenchRunInfo:
    """The record of a run that begins now.

    Raises:
        InputError: a candidate is given twice.
    """
    if len({entry.name for entry in entries}) != len(entries):
        raise InputError("a candidate is given twice")
    return BenchRunInfo(
        SCHEMA_VERSION,
        suite.name,
        suite.content_hash,
        tuple(entry.template for entry in entries),
        {entry.name: entry.code_hash for entry in entries if entry.code_hash},
        settings,
        environment,
        (*NOT_COVERED, *find_sandbox(settings.sandbox).unrestricted),
    )


def run_folder(out: Path) -> RunFolder[BenchRunInfo, Trial, tuple[str, str]]:
    """The folder of a run: a trial a line, of which the last of a graph and candidate counts."""
    return RunFolder(
        out,
        RUN_FILE,
        BenchRunInfo,
        TRIALS_FILE,
        Trial,
        lambda trial: (trial.graph, trial.candidate),
        "trials",
    )


def environment_difference(one: Environment, other: Environment) -> tuple[str, Any, Any] | None:
    """The first fact in which two environments differ whose times cannot be in one run, and both
    its values; None where there is none.
    """
    for name in SAME_ENVIRONMENT:
        if getattr(one, name) != getattr(other, name):
            return name, getattr(one, name), getattr(other, name)
    return None


def _continued(out: Path, old: BenchRunInfo, info: BenchRunInfo) -> BenchRunInfo:
    """What a run goes on with: the same, but for candidates that were added.

    Raises:
        InputError: something else differs.
    """
    if difference := _difference(old, info):
        raise InputError(f"{out}: {difference}; choose another --out")
    candidates = tuple(dict.fromkeys((*old.candidates, *info.candidates)))
    code_hashes = old.code_hashes | info.code_hashes
    return replace(old, candidates=candidates, code_hashes=code_hashes)


def _difference(old: BenchRunInfo, info: BenchRunInfo) -> str | None:
    """What keeps the trials of two runs apart, as the end of a sentence; None where nothing does,
    as both may have candidates that the other one lacks.
    """
    if old.schema_version != SCHEMA_VERSION:
        return (
            f"its records have version {old.schema_version}, this passnet writes version "
            f"{SCHEMA_VERSION}"
        )
    for name, difference in (("suite_hash", "another suite"), ("settings", "other settings")):
        if getattr(old, name) != getattr(info, name):
            return f"holds a run with {difference}, and not with what this one was given"
    if difference := environment_difference(old.environment, info.environment):
        name, before, now = difference
        return (
            f"was measured with {name} {before}, and here it is {now}; times of both cannot be in "
            "one run"
        )
    for name, code_hash in info.code_hashes.items():
        if old.code_hashes.get(name, code_hash) != code_hash:
            return f"the files of {name} have changed since that run"
    return None
