"""Rounds in which eager torch, the compiled call, its parts with clocks, and the compiled graph
called directly are run in turns.
"""

import gc
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np

from passnet.inductor.clocks import OWN, WALL, Clock
from passnet.judge.timing.estimate import LOW_SHARE, Speedup, low_mean, self_ratio, speedup

BURST_MS = 2.0
MAX_CALLS = 200
MIN_ROUNDS, MAX_ROUNDS = 12, 80
MAX_TRIES, LONG_NS = 5, 20_000_000
"""A burst in which something else had the processor is repeated so often, unless it is long."""

PRECISE, ROUNDS_BETWEEN = 0.02, 4
"""Rounds end early where the interval of a speedup is within this share of its value; it is asked
now and then."""

SLOW_MS, SLOW_ROUNDS = 20.0, 4
VERY_SLOW_MS, VERY_SLOW_ROUNDS = 500.0, 2
"""Where a call takes longer than one of these, none is warmed up before each burst, and the least
rounds are fewer: what disturbs a call lasts no longer for it."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make a call: the call, the context that a burst of it runs in, and what it counts
    beside time, read before and after a burst.
    """

    call: Callable[[], object]
    context: Callable[[], AbstractContextManager[None]] = nullcontext
    counts: Callable[[], tuple[int, ...]] = tuple


@dataclass(slots=True)
class Turns:
    """The bursts of one way: milliseconds of a call, and what a call counts.

    Shapes:
        ms: [rounds, turns]
        counts: [rounds, turns, counts]
    """

    ms: list[list[float]] = field(default_factory=list)
    counts: list[list[tuple[float, ...]]] = field(default_factory=list)

    def low(self) -> tuple[float, np.ndarray]:
        """The mean time of a call in the fastest half of the bursts, and the means of what calls
        counted in these.
        """
        times = np.array(self.ms).reshape(-1)
        chosen = np.argsort(times)[: max(1, round(len(times) * LOW_SHARE))]
        counts = np.array(self.counts).reshape(len(times), -1)
        return float(times[chosen].mean()), counts[chosen].mean(axis=0)


@dataclass(frozen=True, slots=True)
class RoundTimes:
    """The turns of all ways, by name."""

    turns: Mapping[str, Turns]

    @property
    def num_rounds(self) -> int:
        """How many rounds there were."""
        return min(len(each.ms) for each in self.turns.values())

    def ms(self, name: str) -> float:
        """The time of a call."""
        return float(low_mean(np.array(self.turns[name].ms).reshape(-1)))

    def speedup(self, name: str, over: str) -> Speedup:
        """How many times as fast one way is as another, with its interval."""
        return speedup(np.array(self.turns[over].ms), np.array(self.turns[name].ms))

    def self_ratio(self, name: str) -> float:
        """First turns over second turns."""
        return self_ratio(np.array(self.turns[name].ms))


def never(_: RoundTimes) -> bool:
    """No measurement is precise enough."""
    return False


def run_rounds(
    ways: Mapping[str, Way],
    seconds: float,
    is_precise: Callable[[RoundTimes], bool] = never,
    clock: Clock = WALL,
) -> RoundTimes:
    """Time ways in rounds of two turns each, forwards and backwards, for so many seconds, or until
    they are precise, and for the least rounds.
    """
    first_ms = {name: _first_ms(way, clock) for name, way in ways.items()}
    counts = {name: max(1, min(MAX_CALLS, int(BURST_MS / ms))) for name, ms in first_ms.items()}
    slowest = max(first_ms.values())
    is_slow = slowest > SLOW_MS
    least = SLOW_ROUNDS if is_slow else MIN_ROUNDS
    if slowest > VERY_SLOW_MS:
        least = VERY_SLOW_ROUNDS
    turns = {name: Turns() for name in ways}
    names = list(ways)
    was_enabled = gc.isenabled()
    gc.disable()
    deadline = time.monotonic() + seconds
    try:
        for number in range(MAX_ROUNDS):
            if number >= least and time.monotonic() > deadline:
                break
            start = number % len(names)
            order = [*names[start:], *names[:start]]
            first = {name: _burst(ways[name], counts[name], clock, is_slow) for name in order}
            second = {
                name: _burst(ways[name], counts[name], clock, is_slow) for name in order[::-1]
            }
            for name in order:
                turns[name].ms.append([first[name][0], second[name][0]])
                turns[name].counts.append([first[name][1], second[name][1]])
            gc.collect(0)
            if number >= least and number % ROUNDS_BETWEEN == 0 and is_precise(RoundTimes(turns)):
                break
    finally:
        if was_enabled:
            gc.enable()
    return RoundTimes(turns)


def _first_ms(way: Way, clock: Clock) -> float:
    """The fastest of some first calls, at least a tenth of a microsecond."""
    fastest = _burst(way, 1, clock)[0]
    if fastest <= SLOW_MS:
        fastest = min(fastest, *(_burst(way, 1, clock)[0] for _ in range(8)))
    return max(fastest, 1e-4)


def _burst(
    way: Way, count: int, clock: Clock, is_slow: bool = False
) -> tuple[float, tuple[float, ...]]:
    """The milliseconds of a call, and what a call counts."""
    with way.context():
        if not is_slow:
            way.call()  # what another one has left in the caches is not its own
        num_tries = 0
        while True:
            num_tries += 1
            switches = _switches()
            before = way.counts()
            start = clock()
            for _ in range(count):
                way.call()
            spent = clock() - start
            after = way.counts()
            is_calm = clock is OWN or is_slow or spent > LONG_NS or _switches() == switches
            if is_calm or num_tries == MAX_TRIES:
                break
    each = tuple((late - early) / count for late, early in zip(after, before, strict=True))
    return spent / count / 1e6, each


def _switches() -> int:
    """How often this thread has lost its processor to another one."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
