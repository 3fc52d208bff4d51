"""Calls of this process timed in rounds, each call in its turn, so that a disturbance hits all."""

import gc
import resource
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from passnet.judge.timing.estimate import LOW_SHARE, Speedup, low_mean, self_ratio, speedup

BURST_MS = 2.0
MAX_CALLS = 200
NUM_FIRST_CALLS = 4
LEAST_MS = 1e-4
LONG_NS = 20_000_000
"""A longer burst is not repeated, even if another process took the processor meanwhile."""
ROUNDS_BETWEEN = 4
"""Rounds between two questions about which calls to go on with."""
HOPELESS = 1.5
"""Calls slower than this multiple of the fastest call's time are dropped after the first rounds."""


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call to time, the context of each burst, and counters read before and after it."""

    run: Callable[[], object]
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    counts: Callable[[], tuple[int, ...]] = tuple


@dataclass(frozen=True, slots=True)
class RoundLimits:
    """Limits of a series of rounds.

    Args:
        min_rounds, max_rounds: rounds at least, whatever the time, and at most.
        slow: pairs of milliseconds and rounds. From each time of a call on, the rounds at least
            are fewer; from the first one on, no call warms up a burst.
        pace: picks the time that is compared with `slow` from the times of all calls.
        num_tries: bursts at most until the OS takes the processor from none of its calls.
    """

    min_rounds: int = 8
    max_rounds: int = 60
    slow: tuple[tuple[float, int], ...] = ((50.0, 2),)
    pace: Callable[[Iterable[float]], float] = min
    num_tries: int = 1

    def least(self, call_ms: float) -> int:
        """Return the rounds at least for a call of this length."""
        fewer = [rounds for from_ms, rounds in self.slow if call_ms > from_ms]
        return min([self.min_rounds, *fewer])

    def is_slow(self, call_ms: float) -> bool:
        """Return whether a call of this length needs no warm-up before each burst."""
        return call_ms > self.slow[0][0]


@dataclass(slots=True)
class Turns:
    """The bursts of one call: milliseconds [rounds, turns], and counts [rounds, turns, counts]."""

    ms: list[list[float]] = field(default_factory=list)
    counts: list[list[tuple[float, ...]]] = field(default_factory=list)

    def low(self) -> tuple[float, np.ndarray]:
        """Return mean time and mean counts of a call over the fastest half of the bursts."""
        times = np.array(self.ms).reshape(-1)
        fastest = np.argsort(times)[: max(1, round(len(times) * LOW_SHARE))]
        counts = np.array(self.counts).reshape(len(times), -1)
        return float(times[fastest].mean()), counts[fastest].mean(axis=0)


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """The turns of all calls, by name."""

    turns: Mapping[str, Turns]

    @property
    def num_rounds(self) -> int:
        """The rounds that every call has."""
        return min(len(turns.ms) for turns in self.turns.values())

    def ms(self, name: str) -> float:
        """Return the time of a call."""
        return float(low_mean(np.array(self.turns[name].ms).reshape(-1)))

    def speedup(self, name: str, over: str) -> Speedup:
        """Return the speedup of one call over another, from the rounds that both have."""
        call_ms, reference_ms = self.turns[name].ms, self.turns[over].ms
        count = min(len(call_ms), len(reference_ms))
        return speedup(np.array(reference_ms[:count]), np.array(call_ms[:count]))

    def self_ratio(self, name: str) -> float:
        """Return the time of first turns over that of second turns."""
        return self_ratio(np.array(self.turns[name].ms))


GoOn = Callable[[RoundTimes], Collection[str]]
"""Names the calls to time on; none ends the rounds."""


def all_calls(times: RoundTimes) -> Collection[str]:
    """Return the names of all calls."""
    return times.turns.keys()


def time_calls(
    calls: Mapping[str, Callable[[], object]],
    seconds: float = 2.0,
    always: Collection[str] = (),
    limits: RoundLimits = RoundLimits(),  # noqa: B008 (frozen)
) -> RoundTimes:
    """Time calls for about `seconds` a call; drop hopeless ones early, except those in `always`."""

    def hopeful(times: RoundTimes) -> list[str]:
        limit = HOPELESS * min(map(times.ms, calls))
        return [name for name in calls if times.ms(name) <= limit or name in always]

    timed = {name: TimedCall(call) for name, call in calls.items()}
    return run_rounds(timed, seconds * len(calls), limits, go_on=hopeful)


def run_rounds(
    calls: Mapping[str, TimedCall],
    seconds: float,
    limits: RoundLimits,
    clock: Callable[[], int] = time.perf_counter_ns,
    go_on: GoOn = all_calls,
) -> RoundTimes:
    """Time calls in rounds of two turns each, forwards and backwards.

    No round begins after so many seconds, once there are the least rounds. `clock` returns
    nanoseconds; `go_on` is asked now and then for the calls to go on with.
    """
    first_ms = {}
    for name, call in calls.items():
        fastest = _burst(call, 1, clock)[0]
        if not limits.is_slow(fastest):
            fastest = min(fastest, *(_burst(call, 1, clock)[0] for _ in range(NUM_FIRST_CALLS)))
        first_ms[name] = max(fastest, LEAST_MS)
    num_calls = {name: max(1, min(MAX_CALLS, int(BURST_MS / ms))) for name, ms in first_ms.items()}
    pace_ms = limits.pace(first_ms.values())
    least, is_slow = limits.least(pace_ms), limits.is_slow(pace_ms)
    times = RoundTimes({name: Turns() for name in calls})
    names = list(calls)
    was_enabled = gc.isenabled()
    gc.disable()
    deadline = time.monotonic() + seconds
    try:
        for number in range(limits.max_rounds):
            if number >= least:
                if (number - least) % ROUNDS_BETWEEN == 0:
                    going_on = go_on(times)
                    names = [name for name in names if name in going_on]
                if not names or time.monotonic() > deadline:
                    break
            start = number % len(names)
            order = [*names[start:], *names[:start]]
            bursts: dict[str, list[tuple[float, tuple[float, ...]]]] = {name: [] for name in order}
            for name in (*order, *order[::-1]):
                burst = _burst(calls[name], num_calls[name], clock, is_slow, limits.num_tries)
                bursts[name].append(burst)
            for name, both in bursts.items():
                times.turns[name].ms.append([ms for ms, _ in both])
                times.turns[name].counts.append([counts for _, counts in both])
            gc.collect(0)
    finally:
        if was_enabled:
            gc.enable()
    return times


def _burst(
    call: TimedCall,
    num_calls: int,
    clock: Callable[[], int],
    is_slow: bool = False,
    num_tries: int = 1,
) -> tuple[float, tuple[float, ...]]:
    """Return the milliseconds and the counts of a call, from a burst of calls."""
    with call.context():
        if not is_slow:
            call.run()  # the caches hold what another call has left
        while True:
            num_tries -= 1
            switches = _switches()
            before = call.counts()
            start = clock()
            for _ in range(num_calls):
                call.run()
            spent_ns = clock() - start
            after = call.counts()
            is_long = is_slow or spent_ns > LONG_NS
            if is_long or num_tries <= 0 or _switches() == switches:
                break
    counts = tuple((late - early) / num_calls for late, early in zip(after, before, strict=True))
    return spent_ns / num_calls / 1e6, counts


def _switches() -> int:
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
