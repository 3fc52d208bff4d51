"""The judge's clock: interleaved calls of several workers, bracketed from outside them.

A call is started by a word in shared memory and ends with another; the time between, by this
process's clock, is its time. The cost of an empty bracket is measured on the same worker and taken
off. Rounds visit the workers forwards and backwards (ABBA), so that a drift of the machine falls on
all alike, and shows in the reference against itself.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from passnet.judge.memory import ControlPage, SharedMemory
from passnet.judge.messages import Arm, Armed, Disarmed, OutputForm
from passnet.judge.process import Worker, WorkerFailureError

NS_PER_MS = 1_000_000
_POLLS_BETWEEN_LOOKS = 4096
_NUM_WARM_CALLS = 3
_NUM_EMPTY_CALLS = 5
_SHORTEST_MS = 1e-4
"""A time below 0.1 microseconds is the clock's own grain."""


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How long to measure.

    Args:
        seconds: time to spend on calls, for each worker.
        min_rounds: rounds to make in any case.
        max_rounds: rounds after which the measurement ends.
        burst_ms: time that a worker is called for in one round.
        min_calls: counted calls of a worker in one round at least.
        max_calls: and at most.
    """

    seconds: float = 0.4
    min_rounds: int = 6
    max_rounds: int = 25
    burst_ms: float = 2.0
    min_calls: int = 3
    max_calls: int = 50


class TimedWorker:
    """A worker with its control page.

    Args:
        worker: loaded and run at least once.
        num_sets: how many input sets its calls take turns on.
        call_timeout_s: how long a call may take.
        restore: called with the number of an input set before each call on it, outside the bracket;
            None where the graph leaves its inputs alone.
    """

    def __init__(
        self,
        worker: Worker,
        num_sets: int,
        call_timeout_s: float,
        restore: Callable[[int], None] | None = None,
    ) -> None:
        self.worker = worker
        self.empty_ms = 0.0
        self.typical_ms = 0.0
        self._num_sets = num_sets
        self._timeout_ns = int(call_timeout_s * 1e9)
        self._restore = restore
        self._page = SharedMemory("passnet-control", mmap.PAGESIZE)
        self._words = ControlPage(self._page.map).words
        self._sent = False
        self._turn = 0

    def close(self) -> None:
        """Give the control page back; the worker stays."""
        self._page.close()

    def arm(self) -> None:
        """Let the worker wait for calls on the page."""
        fds = () if self._sent else (self._page.fd,)
        self._sent = True
        self.worker.ask(Arm(), Armed, self._timeout_ns / 1e9, fds)

    def disarm(self) -> tuple[OutputForm, ...]:
        """Take the worker off the page; the form of its kept outputs."""
        self._command(ControlPage.STOP)
        return self.worker.receive(Disarmed, self._timeout_ns / 1e9).outputs

    def look(self) -> None:
        """Warm the worker up, measure its empty bracket and how long a call takes about."""
        self.arm()
        for _ in range(_NUM_WARM_CALLS):
            self.typical_ms = self._call_ms()
        empty = [self._command(ControlPage.NOTHING) for _ in range(_NUM_EMPTY_CALLS)]
        self.empty_ms = min(empty) / NS_PER_MS
        self.disarm()

    def burst_ms(self, num_calls: int) -> float:
        """The median time of some calls in a row on one input set, after one that does not count.

        The uncounted call brings inputs and code into the cache, whoever ran before: what is
        measured is the hot cache. The next burst takes the next set.
        """
        self._turn = (self._turn + 1) % self._num_sets
        self.arm()
        self._call_ms()
        times = sorted(self._call_ms() for _ in range(num_calls))
        self.disarm()
        return max(times[len(times) // 2] - self.empty_ms, _SHORTEST_MS)

    def kept_call(self) -> tuple[int, tuple[OutputForm, ...]]:
        """One call as in a burst, whose outputs stay to be looked at; its input set, their form."""
        self.arm()
        self._call_ms(keep=True)
        return self._turn, self.disarm()

    def _call_ms(self, keep: bool = False) -> float:
        if self._restore is not None:
            self._restore(self._turn)
        return self._command(self._turn | (ControlPage.KEEP if keep else 0)) / NS_PER_MS

    def _command(self, command: int) -> int:
        """Give a command and wait for its end; the nanoseconds between."""
        words = self._words
        go, done, ready = ControlPage.GO, ControlPage.DONE, ControlPage.READY
        number = words[go] + 1
        words[ControlPage.COMMAND] = command
        start = time.perf_counter_ns()
        words[go] = number
        self._wait(done, number, start)
        elapsed = time.perf_counter_ns() - start
        self._wait(ready, number, start)
        return elapsed

    def _wait(self, word: int, number: int, start: int) -> None:
        words = self._words
        polls = 0
        while words[word] != number:
            polls += 1
            if polls % _POLLS_BETWEEN_LOOKS == 0:
                if not self.worker.alive():
                    raise self.worker.died("end of stream")
                if time.perf_counter_ns() - start > self._timeout_ns:
                    self.worker.close()
                    limit = self._timeout_ns / 1e9
                    raise WorkerFailureError(
                        "timeout", "Timeout", f"no end of a call in {limit:g} s"
                    )


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of several workers, round by round.

    `rounds[i]` holds for worker i the times of its two turns in every round, in milliseconds: each
    the median of that turn's calls. `failures` maps workers that failed on the way to how; their
    times are empty.
    """

    rounds: tuple[tuple[tuple[float, float], ...], ...]
    calls_per_turn: int
    failures: Mapping[int, WorkerFailureError]


def interleave(workers: Sequence[TimedWorker], plan: TimingPlan) -> Measurement:
    """Rounds in which every worker has two turns: forwards, then backwards (ABBA).

    The order is rotated from round to round, so that each worker is as often next to itself, and
    next to each other, as any: what runs before a turn has left its traces in the shared cache.

    Raises:
        WorkerFailureError: the first worker, the reference, failed.
    """
    samples: list[list[tuple[float, float]]] = [[] for _ in workers]
    failures: dict[int, WorkerFailureError] = {}

    def visit(index: int, action: Callable[[TimedWorker], float | None]) -> float | None:
        try:
            return None if index in failures else action(workers[index])
        except WorkerFailureError as failure:
            if index == 0:
                raise
            failures[index] = failure
            return None

    for index in range(len(workers)):
        visit(index, TimedWorker.look)
    slowest = max(item.typical_ms for item in workers)
    fitting = int(plan.burst_ms / max(slowest, _SHORTEST_MS))
    calls = max(plan.min_calls, min(plan.max_calls, fitting))
    deadline = time.monotonic() + plan.seconds * len(workers)
    for number in range(plan.max_rounds):
        if number >= plan.min_rounds and time.monotonic() > deadline:
            break
        first = number % len(workers)
        order = [*range(first, len(workers)), *range(first)]
        forwards = {index: visit(index, lambda item: item.burst_ms(calls)) for index in order}
        for index in reversed(order):
            back = visit(index, lambda item: item.burst_ms(calls))
            there = forwards[index]
            if back is not None and there is not None:
                samples[index].append((there, back))
    for index in failures:
        samples[index].clear()
    return Measurement(tuple(tuple(item) for item in samples), calls, failures)
