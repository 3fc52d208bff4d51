"""Jobs judged one after another, in this process or in one that a service starts.

`python -m passnet_service.judging SETTINGS FOLDER` answers jobs, a JSON line each, from standard
input to standard output. It ends with its input, or with the process that started it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from passnet.agent.attempts.observations import plain
from passnet.core.jobs.children import end_with_parent
from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, PassFolderError, PassnetError
from passnet.judge.desk.desk import NAME, JudgeDesk
from passnet.judge.processes.device_lock import turn_waits
from passnet.judge.score.status import Status
from passnet.judge.suite.suite import graph_of_row
from passnet.judge.task import Task
from passnet.judge.verdict.verdict import Evidence, decide
from passnet.train.service.submission import Judged
from passnet_service.jobs import JudgeJob
from passnet_service.settings import ServiceSettings

READY = b"ready\n"
"""The line that a judging process writes before its first job."""


LOOK_EVERY_S = 0.5
"""Time between two looks at the budget of a submission."""


class JobJudge:
    """A judge of one job after another, each within the budget; enter it.

    A job that exceeds its budget ends the processes of the judge, which then starts new ones.
    """

    def __init__(self, settings: ServiceSettings, folder: str | None = None) -> None:
        self._settings = settings
        self._folder = folder
        self._desk: JudgeDesk | None = None

    def __enter__(self) -> JobJudge:
        self._opened()
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def judge(self, job: JudgeJob) -> Judged:
        """Judge a job; one that exceeds its budget is a timeout on all its graphs."""
        desk = self._opened()
        with _Budget(self._settings.budget_s, desk.close) as budget:
            judged = judge_one(desk, job)
        if not budget.is_over:
            return judged
        self._close()
        if judged.fault is None:
            return judged
        text = f"not judged in {self._settings.budget_s:g} s, on all graphs together"
        return _failed(desk, job, ("timeout", text))

    def _opened(self) -> JudgeDesk:
        if self._desk is not None and not _has_files(self._desk):
            self._close()
        if self._desk is None:
            settings = self._settings
            self._desk = JudgeDesk(settings.run, settings.call, self._folder).__enter__()
        return self._desk

    def _close(self) -> None:
        desk, self._desk = self._desk, None
        if desk is not None:
            desk.__exit__()


class _Budget:
    """A time limit for a block, without waits for a turn; `end` is called once it is over."""

    def __init__(self, seconds: float, end: Callable[[], None]) -> None:
        self._seconds = seconds
        self._end = end
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.is_over = False

    def __enter__(self) -> _Budget:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _watch(self) -> None:
        start = time.monotonic() - turn_waits.seconds()
        while (spent_s := time.monotonic() - turn_waits.seconds() - start) < self._seconds:
            if self._is_done.wait(min(LOOK_EVERY_S, self._seconds - spent_s)):
                return
        self.is_over = True
        self._end()


def judge_one(desk: JudgeDesk, job: JudgeJob) -> Judged:
    """Judge a job; an unusable pass folder counts as one that does not compile.

    If the desk's temporary files vanish meanwhile, nothing is known of the job: a fault of ours.
    """
    judged = _judged(desk, job)
    return judged if _has_files(desk) else Judged(fault="the judge's temporary files have vanished")


def _has_files(desk: JudgeDesk) -> bool:
    return Path(desk.root).is_dir()


def _judged(desk: JudgeDesk, job: JudgeJob) -> Judged:
    graphs, unseen = (
        [graph_of_row(row, row.name) for row in rows] for rows in (job.graphs, job.unseen)
    )
    task = Task(graphs[0].task, tuple(graphs))
    try:
        if job.is_unchanged:
            return Judged(tuple(desk.unchanged(task)))
        trials = desk.judge(task, job.files, unseen, job.is_timed)
    except PassFolderError as cause:
        return _failed(desk, job, ("compile_error", plain(str(cause), desk.root)))
    except InputError as cause:
        return Judged(fault=f"the judge cannot take the submission: {cause}")
    except PassnetError as cause:
        return Judged(fault=str(cause))
    return Judged(tuple(trials))


def _failed(desk: JudgeDesk, job: JudgeJob, failure: tuple[Status, str]) -> Judged:
    evidence = [Evidence(row.task, row.name, NAME, failure=failure) for row in job.graphs]
    return Judged(tuple(decide(each, desk.settings.judge) for each in evidence))


def main(settings: str, folder: str) -> None:
    """Judge the jobs of standard input until there are no more; `folder` is for its files."""
    end_with_parent()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # the output of libraries is no answer
    with JobJudge(decode(settings, ServiceSettings), folder) as judge:
        answers.write(READY)
        while line := jobs.readline():
            answers.write(encode(judge.judge(decode(line, JudgeJob))) + b"\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
