"""A task judged under several candidates, retried with new processes if the judge itself fails."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from passnet.core.jobs.actors import this_machine
from passnet.errors import MeasureError, WorkerError, boundary
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.desk.candidates import CandidateEntry
from passnet.judge.held_out import held_out_findings
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.score.status import Status
from passnet.judge.settings import JudgeSettings, RunSettings
from passnet.judge.task import Task, TaskGraph
from passnet.judge.trial import Trial
from passnet.judge.verdict.findings import Finding, finding
from passnet.judge.verdict.verdict import Evidence, decide

T = TypeVar("T")

MAX_TOGETHER = 16
"""Most candidates with processes at a time; more are judged in groups, each beside a reference."""

MAX_ATTEMPTS = 3
"""Most attempts, each with new processes, before a run is given up."""


def judge_task(
    parents: ParentPool,
    task: Task,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    unseen: Sequence[TaskGraph],
    finished: Collection[tuple[str, str]],
    inspected: InspectedFolders,
    reference: Candidate = REFERENCE,
) -> Iterator[tuple[TaskGraph, list[Trial]]]:
    """Yield the new trials of a task, graph by graph; finished pairs of names are left out.

    Beyond `MAX_TOGETHER` candidates, graphs come once for each group of them. Results on the unseen
    graphs, which were held out, count in all trials of a candidate. A candidate has crashed if the
    judge itself fails several times with it alone. `reference` is what they are timed against.
    """
    missing = [
        entry
        for entry in entries
        if any((graph.name, entry.name) not in finished for graph in task.graphs)
    ]
    for start in range(0, max(1, len(missing)), MAX_TOGETHER):
        group = missing[start : start + MAX_TOGETHER]
        yield from _judge_group(
            parents, task, group, settings, unseen, finished, inspected, reference
        )
        if group != missing:
            parents.drop()


def _judge_group(
    parents: ParentPool,
    task: Task,
    entries: Sequence[CandidateEntry],
    settings: RunSettings,
    unseen: Sequence[TaskGraph],
    finished: Collection[tuple[str, str]],
    inspected: InspectedFolders,
    reference: Candidate,
) -> Iterator[tuple[TaskGraph, list[Trial]]]:
    candidates = _candidates(entries, task.name)
    _repeated(parents, task.name, lambda: [*map(inspected.failure, candidates.values())])
    if candidates:
        parents.start(candidates.values())
    judge = settings.judge
    findings: dict[str, tuple[Finding, ...]] = {}

    def hold_out(candidates: list[Candidate]) -> Iterable[tuple[str, tuple[Finding, ...]]]:
        return held_out_findings(parents, unseen, candidates, judge, inspected).items()

    def found_out(candidate: Candidate, text: str) -> tuple[str, tuple[Finding, ...]]:
        return candidate.name, (finding("hard_coded_shape", f"on a held-out shape: {text}"),)

    with_code = [candidate for candidate in candidates.values() if candidate.passes]
    if unseen and with_code:
        findings = dict(_apart(parents, task.name, with_code, hold_out, found_out))
    for graph in task.graphs:
        names = [entry.name for entry in entries if (graph.name, entry.name) not in finished]
        absent = [name for name in names if name not in candidates]
        text = f"holds no pass folder for task {task.name}"
        trials = [_failed(graph, name, "no_match", f"{name} {text}", judge) for name in absent]
        if present := [candidates[name] for name in names if name in candidates]:
            trials += _judge(parents, graph, present, judge, inspected, findings, reference)
        yield graph, [replace(trial, machine=this_machine()) for trial in trials]


def _candidates(entries: Iterable[CandidateEntry], task: str) -> dict[str, Candidate]:
    candidates = {entry.name: entry.for_task(task) for entry in entries}
    return {name: candidate for name, candidate in candidates.items() if candidate is not None}


def _failed(
    graph: TaskGraph, candidate: str, status: Status, text: str, judge: JudgeSettings
) -> Trial:
    return decide(Evidence(graph.task, graph.name, candidate, failure=(status, text)), judge)


def _judge(
    parents: ParentPool,
    graph: TaskGraph,
    candidates: list[Candidate],
    judge: JudgeSettings,
    inspected: InspectedFolders,
    findings: dict[str, tuple[Finding, ...]],
    reference: Candidate,
) -> list[Trial]:
    def judge_some(some: list[Candidate]) -> list[Trial]:
        return judge_graph(parents, graph, some, judge, inspected, findings, reference)

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
    """Run an action for some candidates at once, or one by one if the judge itself fails.

    If it then fails for one candidate but works for the reference, that candidate is the cause; if
    for the reference too, MeasureError is raised.
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
    """Return the result of an action, retried with new processes before a MeasureError."""
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with boundary(WorkerError, "an error of the judge"):
                return action()
        except WorkerError as cause:
            parents.end()
            if attempt == MAX_ATTEMPTS:
                raise MeasureError(
                    f"cannot measure {subject}: {cause} ({MAX_ATTEMPTS} attempts)"
                ) from cause
    raise AssertionError("the last attempt returns or raises")
