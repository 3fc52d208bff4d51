"""Requests to the reward service: the trials of an answer."""

from functools import cache

from passnet.judge.suite.suite import load_suite, row_of_graph
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.service.client import judge_all, service_address
from passnet.train.service.submission import Purpose, Submission


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
