"""Requests to the reward service: the trials of an answer."""

from functools import cache

from passnet.judge.suite.suite import load_suite, row_of_graph
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.service.client import judge_all, service_address
from passnet.train.service.submission import Purpose, Submission

MAX_EVALUATION_S = 540.0
"""Longest evaluation by a tool: the MCP client of verifiers 0.4.0 ends a call after 600 s, and
repeats it up to 5 times.
"""


class NotJudgedError(RuntimeError):
    """An answer could not be judged: no reward, and not a zero."""


@cache
def suite_tasks(suite: str) -> dict[str, Task]:
    """Return the tasks of a suite by name; a suite is read once, as that takes a second or two."""
    return {task.name: task for task in load_suite(suite).tasks}


async def judged(
    task: Task, files: Files, is_timed: bool, timeout_s: float, purpose: Purpose
) -> tuple[Trial, ...]:
    """Return the trials of a pass folder.

    Raises:
        NotJudgedError: a fault of the service, or no answer in time.
    """
    graphs = tuple(map(row_of_graph, task.graphs))
    submission = Submission(task.name, files, graphs=graphs, is_timed=is_timed, purpose=purpose)
    [report] = await judge_all(service_address(timeout_s), [submission])
    if report.judged is None or report.judged.fault is not None:
        raise NotJudgedError(report.judged.fault if report.judged else "no answer")
    return report.judged.trials


async def evaluated(
    task: Task, files: Files, is_timed: bool, timeout_s: float
) -> tuple[Trial, ...] | str:
    """Return the trials of an evaluation within `MAX_EVALUATION_S`, or why there are none.

    An evaluation of the same files that is under way is waited for, and not begun again.
    """
    try:
        return await judged(task, files, is_timed, min(timeout_s, MAX_EVALUATION_S), "evaluation")
    except NotJudgedError as cause:
        return f"error: not judged, {cause}; evaluate again to wait for it"
