"""Items on their way from the queue to judges and back: one at a time to each judge."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from passnet.errors import MeasureError, PassnetError
from passnet.train.service.judges import JudgeLostError, ServiceJudge
from passnet.train.service.queue import QueueCounts, SubmissionQueue
from passnet.train.service.submission import Judged, JudgeItem, JudgeReport

T = TypeVar("T")

MAX_LOSSES = 3
"""How many judges a submission may cost before it is given up as a fault of ours."""

IDLE_S = 1.0
"""After so many seconds a judge without work looks again, and one that did not start is started."""

NUM_RECENT = 64
"""Of how many items the seconds with a judge are remembered, to say when to come back."""


class Dispatcher:
    """Feeds judges from a queue for as long as the block runs.

    All that reads or writes the queue does so on one thread of its own, so that waiting for the
    disk keeps nobody else waiting.
    """

    def __init__(
        self, queue: SubmissionQueue, judges: Sequence[ServiceJudge], item_timeout_s: float
    ) -> None:
        self._queue = queue
        self._judges = judges
        self._item_timeout_s = item_timeout_s
        self._disk = ThreadPoolExecutor(1, "queue")
        self._arrived = asyncio.Event()
        self._ended: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._recent_s: deque[float] = deque([1.0], NUM_RECENT)
        self._started = time.monotonic()
        self.busy_s = 0.0
        """Seconds that judges have been busy for, all together."""
        self.num_judged = 0
        """Items that were judged since the service began."""
        self.num_lost = 0
        """Judges that were lost since then."""

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
        """The share of their time that judges have been busy."""
        passed_s = (time.monotonic() - self._started) * len(self._judges)
        return self.busy_s / passed_s if passed_s else 0.0

    async def fed(self) -> None:
        """Wait for as long as judges are fed.

        Raises:
            MeasureError: a judge does not start.
        """
        await asyncio.gather(*self._tasks)

    async def put(self, submission: str, item: JudgeItem) -> JudgeReport:
        """Where a submission stands, which waits from now on if it is new.

        Raises:
            QueueFullError: too many wait.
        """
        report = await self._on_disk(lambda: self._queue.put(submission, item))
        if report.state == "waiting":
            self._arrived.set()
        return report

    async def report(self, submission: str, wait_s: float = 0.0) -> JudgeReport | None:
        """Where a submission stands, once it is done or `wait_s` seconds have passed."""
        if wait_s > 0:
            ended = self._ended[submission]  # before the look at the disk, not to miss its end
            report = await self._on_disk(lambda: self._queue.report(submission))
            if report is None or report.state == "done":
                self._forget(submission, ended)
                return report
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await ended.wait()
        return await self._on_disk(lambda: self._queue.report(submission))

    async def counts(self) -> QueueCounts:
        """How many submissions are in which state."""
        return await self._on_disk(self._queue.counts)

    def retry_after_s(self) -> int:
        """When a client that was told to come back should do so: when a tenth of what waits may
        have been judged, and in a minute at the latest.
        """
        mean_s = sum(self._recent_s) / len(self._recent_s)
        tenth_s = mean_s * max(self._queue.max_waiting // 10, 1) / max(len(self._judges), 1)
        return max(1, min(60, round(tenth_s)))

    async def _on_disk(self, action: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._disk, action)

    async def _feed(self, judge: ServiceJudge) -> None:
        """Give a judge one item after another."""
        while True:
            await self._open(judge)
            self._arrived.clear()  # before the look, not to miss what comes after it
            taken = await self._on_disk(lambda: self._queue.take(judge.name))
            if taken is None:
                with suppress(TimeoutError):
                    async with asyncio.timeout(IDLE_S):
                        await self._arrived.wait()
                continue
            submission, item = taken
            start = time.monotonic()
            judged = await self._judged(judge, submission, item)
            seconds = time.monotonic() - start
            self.busy_s += seconds
            if judged is None:
                continue
            self._recent_s.append(seconds)
            self.num_judged += 1
            await self._on_disk(lambda: self._queue.finish(submission, judged))  # noqa: B023
            self._forget(submission, self._ended[submission])

    async def _open(self, judge: ServiceJudge) -> None:
        """See that a judge is there, before it is given anything.

        Raises:
            MeasureError: it does not start, again and again.
        """
        for attempt in range(1, MAX_LOSSES + 1):
            try:
                return await judge.open()
            except JudgeLostError as cause:
                if attempt == MAX_LOSSES:
                    raise MeasureError(f"{cause}, before its first item") from cause
                await asyncio.sleep(IDLE_S)
        raise AssertionError("the last attempt returns or raises")

    async def _judged(self, judge: ServiceJudge, submission: str, item: bytes) -> Judged | None:
        """What comes of an item; None where the judge was lost, and the item waits again."""
        try:
            async with asyncio.timeout(self._item_timeout_s):
                return await judge.judge(item)
        except TimeoutError:
            await judge.close()
            return Judged(fault=f"not judged in {self._item_timeout_s:g} s")
        except JudgeLostError as cause:
            self.num_lost += 1
            num_losses = await self._on_disk(lambda: self._queue.lose(submission))
            if num_losses < MAX_LOSSES:
                return None
            return Judged(fault=f"{num_losses} judges were lost over it: {cause}")
        except PassnetError as cause:
            await judge.close()
            return Judged(fault=str(cause))

    def _forget(self, submission: str, ended: asyncio.Event) -> None:
        ended.set()
        self._ended.pop(submission, None)
