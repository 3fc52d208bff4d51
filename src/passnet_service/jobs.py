"""A submission completed for a judge, which then needs to know no suites."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from passnet.core.records.serialise import encode
from passnet.errors import InputError, no_such
from passnet.judge.suite.suite import (
    Suite,
    SuiteRow,
    graph_of_row,
    held_out_graphs,
    make_suite,
    row_of_graph,
)
from passnet.passes.files import Files, created
from passnet.train.service.submission import Submission

MAX_GRAPHS = 64
"""Most graphs of a task that comes with a submission."""


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """A complete submission, whose judge needs to know no suites."""

    graphs: tuple[SuiteRow, ...]
    unseen: tuple[SuiteRow, ...]
    files: Files
    is_timed: bool
    is_unchanged: bool = False


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
