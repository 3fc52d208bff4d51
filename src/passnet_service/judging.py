"""Jobs judged one after another, in this process or in one that a service starts.

`python -m passnet_service.judging SETTINGS` answers jobs, a JSON line each, from standard
input to standard output. It ends with its input, or with the process that started it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from passnet.agent.attempts.observations import plain
from passnet.core.jobs.children import end_with_parent
from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, PassFolderError, PassnetError
from passnet.judge.desk.desk import NAME, JudgeDesk
from passnet.judge.score.status import Status
from passnet.judge.suite.suite import graph_of_row
from passnet.judge.task import Task
from passnet.judge.verdict.verdict import Evidence, decide
from passnet.train.service.submission import Judged, JudgeJob
from passnet_service.settings import ServiceSettings

READY = b"ready\n"
"""The line that a judging process writes before its first job."""


@contextmanager
def open_judging(settings: ServiceSettings) -> Iterator[Callable[[JudgeJob], Judged]]:
    """Hold a judge of jobs open for as long as the block runs."""
    with JudgeDesk(settings.run, settings.call) as desk:
        yield partial(judge_one, desk)


def judge_one(desk: JudgeDesk, job: JudgeJob) -> Judged:
    """Judge a job; an unusable pass folder counts as one that does not compile."""
    graphs = [graph_of_row(row, row.name) for row in job.graphs]
    unseen = [graph_of_row(row, row.name) for row in job.unseen]
    task = Task(graphs[0].task, tuple(graphs))
    try:
        trials = desk.judge(task, job.files, unseen, job.is_timed)
    except PassFolderError as cause:
        failure: tuple[Status, str] = ("compile_error", plain(str(cause), desk.root))
        evidence = [Evidence(task.name, graph.name, NAME, failure=failure) for graph in graphs]
        trials = [decide(refusal, desk.settings.judge) for refusal in evidence]
    except InputError as cause:
        return Judged(fault=f"the judge cannot take the submission: {cause}")
    except PassnetError as cause:
        return Judged(fault=str(cause))
    return Judged(tuple(trials))


def main(settings: str) -> None:
    """Judge the jobs of standard input until there are no more."""
    end_with_parent()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # the output of libraries is no answer
    with open_judging(decode(settings, ServiceSettings)) as judge:
        answers.write(READY)
        while line := jobs.readline():
            answers.write(encode(judge(decode(line, JudgeJob))) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1])
