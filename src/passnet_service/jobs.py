"""A submission completed for a judge, which then needs to know no suites."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from passnet.core.records.serialise import encode
from passnet.errors import InputError, no_such
from passnet.judge.suite.suite import (
    Suite,
    SuiteRow,
    graph_of_row,
    make_suite,
    row_of_graph,
)
from passnet.passes.files import Files, created
from passnet.train.service.submission import Purpose, Submission

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
    purpose: Purpose = "evaluation"


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
    graphs = _graphs(submission, suites)
    unseen = (*_held_out_rows(held_out, graphs), *submission.unseen)
    how = (files, submission.is_timed, submission.is_unchanged, submission.purpose)
    return JudgeJob(graphs, _distinct(unseen), *how)


def _graphs(submission: Submission, suites: Mapping[str, Suite]) -> tuple[SuiteRow, ...]:
    """Return the graphs of a submission's task, from the submission or from the named suite."""
    own = submission.graphs if submission.suite is None else ()
    if len(own) > MAX_GRAPHS or len(submission.unseen) > MAX_GRAPHS:
        raise InputError(f"a task may have {MAX_GRAPHS} graphs, and as many in other shapes")
    is_own = all(row.task == submission.task for row in (*own, *submission.unseen))
    if not is_own or (submission.suite is None and not own):
        raise InputError(f"give graphs of task {submission.task}, or the suite that it is in")
    if submission.suite is None:
        return own
    if submission.suite not in suites:
        raise InputError(
            f"{no_such('suite', submission.suite, suites)}; send the graphs of the task, or start "
            "the service with --suite"
        )
    tasks = {task.name: task for task in suites[submission.suite].tasks}
    if submission.task not in tasks:
        missing = no_such("task", submission.task, tasks)
        raise InputError(f"suite {submission.suite} has {missing}")
    return tuple(row_of_graph(graph) for graph in tasks[submission.task].graphs)


def _held_out_rows(held_out: Suite | None, graphs: Sequence[SuiteRow]) -> list[SuiteRow]:
    """Return the held-out graphs with the ops of a task; a task of its name comes first."""
    name, ops = graphs[0].task, graphs[0].op_sequence
    tasks = [task for task in (held_out.tasks if held_out else ()) if task.ops == ops]
    named = [task for task in tasks if task.name == name]
    return [
        replace(row_of_graph(graph), task=name) for task in named or tasks for graph in task.graphs
    ]


def _distinct(rows: Sequence[SuiteRow]) -> tuple[SuiteRow, ...]:
    """Return rows without repeated graphs, and under distinct names."""
    by_content = {(row.program, row.tensors): row for row in reversed(rows)}
    counts: Counter[str] = Counter()
    distinct = []
    for row in reversed(by_content.values()):
        counts[row.name] += 1
        number = counts[row.name]
        distinct.append(row if number == 1 else replace(row, name=f"{row.name} ({number})"))
    return tuple(distinct)


def check_graphs(rows: Sequence[SuiteRow]) -> None:
    """Raise InputError for graphs that cannot be read, or do not have the op sequence they name."""
    if not rows:
        return
    where = f"task {rows[0].task}"
    [task] = make_suite(where, [graph_of_row(row, where) for row in rows]).tasks
    if any(row.op_sequence != task.ops for row in rows):
        raise InputError(f"{where}: its graphs have other ops than their column op_sequence")


def submission_id(job: JudgeJob, settings_digest: str, repeat: int) -> str:
    """Hash the graphs but their origins, the files, settings, number of repeats and purpose."""
    bare = [tuple(replace(row, source="null") for row in rows) for rows in (job.graphs, job.unseen)]
    parts = (bare, sorted(job.files.items()), job.is_timed, settings_digest, repeat)
    if job.is_unchanged:
        parts += ("unchanged",)
    if job.purpose != "evaluation":
        parts += (job.purpose,)
    return hashlib.sha256(encode(parts)).hexdigest()[:32]
