"""Requests to the reward service: its address, and the trials of an answer."""

import os

from passnet.judge.suite.suite import load_suite, row_of_graph
from passnet.judge.task import Task
from passnet.judge.trial import Trial
from passnet.passes.files import Files
from passnet.train.service.client import ServiceAddress, judge_all
from passnet.train.service.submission import Submission

URL_VARIABLE = "PASSNET_JUDGE_URL"
TOKEN_VARIABLE = "PASSNET_JUDGE_TOKEN"


class NotJudgedError(RuntimeError):
    """An answer could not be judged: no reward, and not a zero."""


def service_address(timeout_s: float) -> ServiceAddress:
    """Return the address of the service that environment variables name.

    Raises:
        ValueError: a variable is missing.
    """
    try:
        url, token = os.environ[URL_VARIABLE], os.environ[TOKEN_VARIABLE]
    except KeyError as missing:
        raise ValueError(
            f"set {missing.args[0]}: start `passnet judge serve`, which says what it is"
        ) from None
    return ServiceAddress(url, token, timeout_s=timeout_s)


def task_named(suite: str, name: str) -> Task:
    """Return a task of a suite by its name."""
    return next(task for task in load_suite(suite).tasks if task.name == name)


async def judged(task: Task, files: Files, is_timed: bool, timeout_s: float) -> tuple[Trial, ...]:
    """Return the trials of a pass folder.

    Raises:
        NotJudgedError: a fault of the service, or no answer in time.
    """
    graphs = tuple(map(row_of_graph, task.graphs))
    submission = Submission(task.name, files, graphs=graphs, is_timed=is_timed)
    [report] = await judge_all(service_address(timeout_s), [submission])
    if report.judged is None or report.judged.fault is not None:
        raise NotJudgedError(report.judged.fault if report.judged else "no answer")
    return report.judged.trials
