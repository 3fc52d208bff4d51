"""The time of one call that finds its caches filled by other work."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from passnet.judge.processes.standstill import Spent
from passnet.judge.protocol.shared_memory import ControlPage
from passnet.judge.timing.estimate import low_mean
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet.judge.timing.timed_worker import TimedWorker
from passnet.judge.timing.worker_record import NS_PER_MS, SHORTEST_MS

COLD_CALLS = 4
"""Calls of each worker of which each finds its caches filled by other work."""

EVICTED_BYTES = 2**23
"""Memory that this work writes: several times the second-level cache of one processor, and less
than the cache that processors may share."""


Visit: TypeAlias = Callable[[int, Callable[[TimedWorker], int]], int | None]
"""Returns the result of an action on a worker by number; None if it fails, or failed before."""


@dataclass(frozen=True)
class ColdCaches:
    """The judge fills the caches of some processors itself, while all workers stand still."""

    processors: set[int]
    fresh: FreshInputs
    ns_of: Callable[[Spent], int]

    def measure(
        self, orders: Sequence[Sequence[int]], visit: Visit, oracle: TimedWorker
    ) -> list[float | None]:
        """Return the milliseconds of a call of each worker; None for one that failed.

        Args:
            orders: of workers, by number, in each round.
            visit: acts on a worker.
            oracle: makes bursts without calls, whose time is subtracted.
        """
        memory, own = np.zeros(EVICTED_BYTES, np.uint8), os.sched_getaffinity(0)

        def fill_caches() -> None:
            for processor in self.processors:
                os.sched_setaffinity(0, {processor})
                np.add(memory, 1, out=memory)
            os.sched_setaffinity(0, own)

        def call_cold(worker: TimedWorker) -> int:
            worker.write(self.fresh, [self.fresh.draw()])
            fill_caches()
            spent = worker.call(1)
            worker.free()
            return self.ns_of(spent)

        calls_ns: list[list[int]] = [[] for _ in orders[0]]
        empty_ns: list[int] = []
        for order in orders:
            for index in order:
                if (ns := visit(index, call_cold)) is not None:
                    calls_ns[index].append(ns)
            fill_caches()
            spent = oracle.order(ControlPage.EMPTY, 1)
            oracle.free()
            empty_ns.append(self.ns_of(spent))
        subtracted_ns = float(low_mean(np.array(empty_ns)))
        return [
            max((float(low_mean(np.array(times))) - subtracted_ns) / NS_PER_MS, SHORTEST_MS)
            if times
            else None
            for times in calls_ns
        ]
