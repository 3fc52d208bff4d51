"""The check of graphs that come with a submission, in a child process with limits.

A small text can take long and much memory to parse, in which time a process answers nobody.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from passnet.core.jobs.process import RECORD_FILE, Job, JobLimits, JobRunner
from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, WorkerError
from passnet.judge.suite.suite import SuiteRow
from passnet_service.jobs import JudgeJob, check_graphs
from passnet_service.queue import UnavailableError

NUM_CHECKS = 2
"""Checks at a time."""

CHECK_LIMITS = JobLimits(seconds=10.0, memory_mib=512)
"""Limits of the check of one submission; those of the largest real graphs take half a second."""

MAX_KNOWN = 4096
"""Checked sets of graphs that are remembered: a training sends the same ones again and again."""


class GraphChecker:
    """Checks of the graphs of submissions; enter it."""

    def __init__(self, limits: JobLimits = CHECK_LIMITS, folder: str | None = None) -> None:
        self._limits = limits
        self._folder = folder
        self._known: dict[bytes, None] = {}
        self._stack = ExitStack()

    def __enter__(self) -> GraphChecker:
        self._all = [self._stack.enter_context(JobRunner(self._folder)) for _ in range(NUM_CHECKS)]
        self._runners: queue.SimpleQueue[JobRunner] = queue.SimpleQueue()
        for runner in self._all:
            self._runners.put(runner)
        self._threads = self._stack.enter_context(ThreadPoolExecutor(NUM_CHECKS, "graphs"))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pids(self) -> list[int]:
        """Return the processes started for it."""
        return [runner.pid for runner in self._all if runner.pid is not None]

    async def check(self, job: JudgeJob) -> None:
        """Raise InputError for graphs that cannot be read within the limits, or are do not
        share one op sequence.
        """
        payload = encode((job.graphs, job.unseen))
        digest = hashlib.sha256(payload).digest()
        if digest in self._known:
            return
        loop = asyncio.get_running_loop()
        if error := await loop.run_in_executor(self._threads, self._error, payload.decode()):
            raise InputError(error)
        if len(self._known) >= MAX_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[digest] = None

    def _error(self, payload: str) -> str:
        runner = self._runners.get()
        try:
            job = Job(f"{__name__}:check_job", payload, self._limits, f"{__name__}:prepare")
            result = runner.run(job)
        except (OSError, WorkerError) as cause:
            raise UnavailableError(f"the graphs cannot be checked: {cause}") from cause
        finally:
            self._runners.put(runner)
        outcome = result.outcome(str)
        if outcome is None:
            limits = f"{self._limits.seconds:g} s and {self._limits.memory_mib} MiB"
            return f"the graphs cannot be read within {limits}"
        return outcome.record


def prepare(_: str) -> None:
    """Do nothing: this module has imported what a check needs."""


def check_job(payload: str, folder: Path) -> None:
    """Leave the reason why graphs are refused, or an empty text."""
    parts = decode(payload, tuple[Sequence[SuiteRow], Sequence[SuiteRow]])
    error = ""
    try:
        for part in parts:
            check_graphs(part)
    except InputError as cause:
        error = str(cause)
    (folder / RECORD_FILE).write_bytes(encode(error))
