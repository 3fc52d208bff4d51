"""What is asked of the reward service, and what it answers: the records that cross the wire."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from passnet.core.records.serialise import encode
from passnet.errors import InputError, did_you_mean
from passnet.judge.held_out import held_out_graphs
from passnet.judge.suite.suite import Suite, SuiteRow, graph_of_row, make_suite, row_of_graph
from passnet.judge.trial import Trial
from passnet.passes.files import Files, created

MAX_GRAPHS = 64
"""Most graphs of a task that comes with a submission."""

SubmissionState: TypeAlias = Literal["waiting", "judging", "done"]


@dataclass(frozen=True, slots=True)
class Submission:
    """A pass folder to judge on a task.

    Args:
        task: its name.
        files: the pass folder.
        suite: the suite of the task, one that the service was started with; None where `graphs`
            hold the task.
        graphs: the graphs of the task, for one that the service does not know.
        unseen: graphs of it in other shapes, on which passes must not be wrong; for a task of a
            suite the service has its own.
        is_timed: measure too, not only compare.
        repeat: another number than before has what was answered once judged again.
    """

    task: str
    files: Files
    suite: str | None = None
    graphs: tuple[SuiteRow, ...] = ()
    unseen: tuple[SuiteRow, ...] = ()
    is_timed: bool = True
    repeat: int = 0


@dataclass(frozen=True, slots=True)
class JudgeItem:
    """What a judge is told of a submission: everything, so that it knows no suites."""

    graphs: tuple[SuiteRow, ...]
    unseen: tuple[SuiteRow, ...]
    files: Files
    is_timed: bool


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge makes of an item: trials; or a fault of ours, in a sentence, and no trials."""

    trials: tuple[Trial, ...] = ()
    fault: str | None = None

    @property
    def is_final(self) -> bool:
        """Whether judging again could not say more: nothing failed that is not the answer's."""
        return self.fault is None and all(trial.status != "unstable" for trial in self.trials)

    @property
    def has_cheat(self) -> bool:
        """Whether a trial was found to cheat."""
        return any(trial.status == "cheat" for trial in self.trials)


@dataclass(frozen=True, slots=True)
class JudgeReport:
    """Where a submission stands.

    Args:
        id: its own, by its content.
        state: done once `judged` is there.
        judged: what came of it.
        is_cached: it was asked for before, and answered then.
        num_losses: how many judges were lost over it.
        waited_s: seconds in the queue.
        judged_s: seconds with a judge.
        judge: which judge.
    """

    id: str
    state: SubmissionState
    judged: Judged | None = None
    is_cached: bool = False
    num_losses: int = 0
    waited_s: float | None = None
    judged_s: float | None = None
    judge: str | None = None


def judge_item(
    submission: Submission, suites: Mapping[str, Suite], held_out: Suite | None
) -> JudgeItem:
    """The task and the files of a submission, checked.

    Raises:
        InputError: no such suite or task, graphs that are none or do not share one op sequence, or
            files that a pass folder cannot have.
    """
    files: Files = {}
    for name in sorted(submission.files):
        files = created(files, name, submission.files[name])
    if submission.suite is None:
        graphs, unseen = submission.graphs, submission.unseen
        if len(graphs) > MAX_GRAPHS or len(unseen) > MAX_GRAPHS:
            raise InputError(f"a task may bring {MAX_GRAPHS} graphs, and so many in other shapes")
        for part in filter(None, (graphs, unseen)):
            where = f"task {submission.task}"
            make_suite(where, [graph_of_row(row, where) for row in part])
        if not graphs or any(row.task != submission.task for row in (*graphs, *unseen)):
            raise InputError(f"give graphs of task {submission.task}, or the suite that it is in")
        return JudgeItem(graphs, unseen, files, submission.is_timed)
    if submission.suite not in suites:
        known = ", ".join(suites) or "none"
        raise InputError(
            f"no suite {submission.suite!r} here; there is {known}; send the graphs of the task, "
            "or start the service with --suite"
        )
    tasks = {task.name: task for task in suites[submission.suite].tasks}
    if submission.task not in tasks:
        hint = did_you_mean(submission.task, list(tasks))
        raise InputError(f"suite {submission.suite} has no task {submission.task!r}{hint}")
    graphs = tuple(row_of_graph(graph) for graph in tasks[submission.task].graphs)
    unseen = tuple(row_of_graph(graph) for graph in held_out_graphs(held_out, submission.task))
    return JudgeItem(graphs, unseen, files, submission.is_timed)


def submission_id(item: JudgeItem, settings_digest: str, repeat: int) -> str:
    """The id of an item: the same for the same task, files and settings.

    Where graphs were found makes no difference.
    """
    bare = [
        tuple(replace(row, source="null") for row in rows) for rows in (item.graphs, item.unseen)
    ]
    content = encode((bare, sorted(item.files.items()), item.is_timed, settings_digest, repeat))
    return hashlib.sha256(content).hexdigest()[:32]
