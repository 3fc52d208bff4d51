"""The dispatcher, which feeds each judge one job at a time from the queue."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from passnet.errors import MeasureError, PassnetError
from passnet.train.service.submission import Judged, JudgeReport, QueueCounts
from passnet_service.jobs import JudgeJob
from passnet_service.judges import JudgeLostError, ServiceJudge
from passnet_service.queue import SubmissionQueue, UnavailableError

T = TypeVar("T")

MAX_LOSSES = 3
"""Lost judges after which a submission is given up as a fault of ours."""

IDLE_S = 1.0
"""Pause of an idle judge, and before another start of a judge."""

NUM_RECENT = 64
"""Number of judging times that `retry_after_s` averages."""

_log = logging.getLogger("passnet")


class Dispatcher:
    """Feeds judges from a queue for as long as the block runs.

    One thread reads and writes the queue, so that nobody else waits for the disk.
    """

    def __init__(
        self,
        queue: SubmissionQueue,
        judges: Sequence[ServiceJudge],
        item_timeout_s: float,
        idle_s: float = IDLE_S,
    ) -> None:
        self._queue = queue
        self._judges = judges
        self._item_timeout_s = item_timeout_s
        self._idle_s = idle_s
        self._is_stuck = False
        self._disk = ThreadPoolExecutor(1, "queue")
        self._arrived = asyncio.Event()
        self._ended: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._recent_s: deque[float] = deque([1.0], NUM_RECENT)
        self._started = time.monotonic()
        self.busy_s = 0.0
        self.num_judged = 0
        self.num_lost = 0
        """Number of lost judges."""

    async def __aenter__(self) -> Dispatcher:
        self._tasks = [asyncio.create_task(self._feed(judge)) for judge in self._judges]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for judge in self._judges:
            await judge.close()
        self._disk.shutdown()

    @property
    def busy_ratio(self) -> float:
        """Busy share of the judges' time."""
        passed_s = (time.monotonic() - self._started) * len(self._judges)
        return self.busy_s / passed_s if passed_s else 0.0

    async def fed(self) -> None:
        """Wait while judges are fed; raise MeasureError if one does not start."""
        await asyncio.gather(*self._tasks)

    async def put(self, submission: str, job: JudgeJob) -> JudgeReport:
        """Return the state of a submission, which starts to wait if it is new; see the queue's."""
        report = await self._on_disk(lambda: self._queue.put(submission, job))
        if report.state == "waiting":
            self._arrived.set()
        return report

    async def report(self, submission: str, wait_s: float = 0.0) -> JudgeReport | None:
        """Return the state of a submission once it is done, or after `wait_s` seconds."""
        if wait_s > 0:
            ended = self._ended[submission]  # before the disk is read, not to miss its end
            report = await self._on_disk(lambda: self._queue.report(submission))
            if report is None or report.state == "done":
                self._forget(submission, ended)
                return report
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await ended.wait()
        return await self._on_disk(lambda: self._queue.report(submission))

    async def counts(self) -> QueueCounts:
        """Count the submissions in each state."""
        return await self._on_disk(self._queue.counts)

    async def count_answer(self, answer: str) -> int:
        """Count an answer that asks for its reward; see the queue's."""
        return await self._on_disk(lambda: self._queue.count_answer(answer))

    def retry_after_s(self) -> int:
        """Return the seconds that judging a tenth of a full queue takes; at most 60."""
        mean_s = sum(self._recent_s) / len(self._recent_s)
        tenth_s = mean_s * max(self._queue.max_waiting // 10, 1) / max(len(self._judges), 1)
        return max(1, min(60, round(tenth_s)))

    async def _on_disk(self, action: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, action)

    async def _in_time(self, action: Callable[[], T]) -> T:
        """Return the result of a change of the queue, as soon as the disk takes it."""
        while True:
            try:
                result = await self._on_disk(action)
            except UnavailableError as cause:
                if not self._is_stuck:
                    _log.warning("%s; the service waits for that", cause)
                self._is_stuck = True
                await asyncio.sleep(self._idle_s)
            else:
                self._is_stuck = False
                return result

    async def _feed(self, judge: ServiceJudge) -> None:
        """Give a judge one job after another, for ever."""
        while True:
            await self._open(judge)
            self._arrived.clear()  # before the queue is read, not to miss an arrival
            work = await self._in_time(lambda: self._queue.take(judge.name))
            if work is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._idle_s):
                        await self._arrived.wait()
                continue
            submission, job = work
            start = time.monotonic()
            judged = await self._judged(judge, submission, job)
            seconds = time.monotonic() - start
            self.busy_s += seconds
            if judged is None:
                continue
            self._recent_s.append(seconds)
            self.num_judged += 1
            await self._in_time(lambda: self._queue.finish(submission, judged))  # noqa: B023
            self._forget(submission, self._ended[submission])

    async def _open(self, judge: ServiceJudge) -> None:
        """Start a judge unless it runs."""
        for attempt in range(1, MAX_LOSSES + 1):
            try:
                return await judge.open()
            except JudgeLostError as cause:
                if attempt == MAX_LOSSES:
                    raise MeasureError(f"{cause}, before its first job") from cause
                await asyncio.sleep(self._idle_s)
        raise AssertionError("the last attempt returns or raises")

    async def _judged(self, judge: ServiceJudge, submission: str, job: bytes) -> Judged | None:
        """Return the result of a job; None where the judge was lost and the job waits again."""
        try:
            async with asyncio.timeout(self._item_timeout_s):
                return await judge.judge(job)
        except TimeoutError:
            await judge.close()
            return Judged(fault=f"not judged in {self._item_timeout_s:g} s")
        except JudgeLostError as cause:
            self.num_lost += 1
            num_losses = await self._in_time(lambda: self._queue.lose(submission))
            if num_losses < MAX_LOSSES:
                return None
            return Judged(fault=f"{num_losses} judges were lost over it: {cause}")
        except PassnetError as cause:
            await judge.close()
            return Judged(fault=str(cause))

    def _forget(self, submission: str, ended: asyncio.Event) -> None:
        ended.set()
        self._ended.pop(submission, None)
