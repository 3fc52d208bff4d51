"""The requests and answers of the reward service, as records."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from passnet.core.records.serialise import encode
from passnet.errors import ActionError, InputError, no_such
from passnet.judge.candidate import CallMode
from passnet.judge.score.status import MACHINES_FAULT
from passnet.judge.settings import RunSettings
from passnet.judge.suite.suite import (
    Suite,
    SuiteRow,
    graph_of_row,
    held_out_graphs,
    make_suite,
    row_of_graph,
)
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created

MAX_GRAPHS = 64
"""Most graphs of a task that comes with a submission."""

SubmissionState: TypeAlias = Literal["waiting", "judging", "done"]


@dataclass(frozen=True, slots=True)
class Submission:
    """A pass folder to judge on a task."""

    task: str
    files: Files
    suite: str | None = None
    """A suite of the service that has the task; None where `graphs` are the task."""

    graphs: tuple[SuiteRow, ...] = ()
    """The graphs of a task that the service does not know."""

    unseen: tuple[SuiteRow, ...] = ()
    """Other shapes of these graphs, on which passes must not be wrong."""

    is_timed: bool = True
    repeat: int = 0
    """A new number asks for another judgement."""

    is_unchanged: bool = False
    """Judge the graphs as they are, called as passes are; `files` do not count."""


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """A complete submission, whose judge needs to know no suites."""

    graphs: tuple[SuiteRow, ...]
    unseen: tuple[SuiteRow, ...]
    files: Files
    is_timed: bool
    is_unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Judged:
    """The result of a job: trials, or a fault of ours in a sentence."""

    trials: tuple[Trial, ...] = ()
    fault: str | None = None

    @property
    def is_final(self) -> bool:
        """True without faults of ours or the machine: another judgement would say no more."""
        return self.fault is None and all(
            trial.status not in MACHINES_FAULT for trial in self.trials
        )

    @property
    def has_cheat(self) -> bool:
        """True if a trial is a cheat."""
        return any(trial.status == "cheat" for trial in self.trials)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """The state of a submission."""

    id: str
    """Hash of its content."""

    state: SubmissionState
    judged: Judged | None = None
    """The result, once the state is "done"."""

    is_cached: bool = False
    """True if an earlier submission was answered so."""

    num_losses: int = 0
    """Judges lost over it."""

    waited_s: float | None = None
    judged_s: float | None = None
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """Numbers of submissions by state."""

    waiting: int
    judging: int
    done: int


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A service's settings, and its submissions, those before a restart included."""

    run: RunSettings
    call: CallMode
    queue: QueueCounts


def judge_job(
    submission: Submission, suites: Mapping[str, Suite], held_out: Suite | None
) -> JudgeJob:
    """Complete a submission with the graphs of its task; see `check_graphs` for graphs of its own.

    Raises:
        InputError: no such suite or task, or files that a pass folder cannot have.
    """
    files: Files = {}
    for name in () if submission.is_unchanged else sorted(submission.files):
        files = created(files, name, submission.files[name])
    how = (files, submission.is_timed, submission.is_unchanged)
    if submission.suite is None:
        graphs, unseen = submission.graphs, submission.unseen
        if len(graphs) > MAX_GRAPHS or len(unseen) > MAX_GRAPHS:
            raise InputError(f"a task may have {MAX_GRAPHS} graphs, and as many in other shapes")
        if not graphs or any(row.task != submission.task for row in (*graphs, *unseen)):
            raise InputError(f"give graphs of task {submission.task}, or the suite that it is in")
        return JudgeJob(graphs, unseen, *how)
    if submission.suite not in suites:
        raise InputError(
            f"{no_such('suite', submission.suite, suites)}; send the graphs of the task, or start "
            "the service with --suite"
        )
    tasks = {task.name: task for task in suites[submission.suite].tasks}
    if submission.task not in tasks:
        missing = no_such("task", submission.task, tasks)
        raise InputError(f"suite {submission.suite} has {missing}")
    graphs = tuple(row_of_graph(graph) for graph in tasks[submission.task].graphs)
    unseen = tuple(row_of_graph(graph) for graph in held_out_graphs(held_out, submission.task))
    return JudgeJob(graphs, unseen, *how)


def judgeable(files: Files) -> Files:
    """Return files that a pass folder can have; for others none at all, which are judged wrong."""
    folder: Files = {}
    try:
        for name in sorted(files):
            folder = created(folder, name, files[name])
    except ActionError:
        return {}
    return folder


def check_graphs(rows: Sequence[SuiteRow]) -> None:
    """Raise InputError for graphs that cannot be read, or do not share one op sequence."""
    if rows:
        where = f"task {rows[0].task}"
        make_suite(where, [graph_of_row(row, where) for row in rows])


def submission_id(job: JudgeJob, settings_digest: str, repeat: int) -> str:
    """Hash the graphs but their origins, the files, the settings and the number of repeats."""
    bare = [tuple(replace(row, source="null") for row in rows) for rows in (job.graphs, job.unseen)]
    parts = (bare, sorted(job.files.items()), job.is_timed, settings_digest, repeat)
    content = encode((*parts, "unchanged") if job.is_unchanged else parts)
    return hashlib.sha256(content).hexdigest()[:32]
