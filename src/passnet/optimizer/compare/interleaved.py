"""Several ways to make one call, timed in turns in this process, so that what disturbs one disturbs
all.
"""

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from passnet.judge.timing.estimate import Speedup, low_mean, speedup

BURST_MS = 2.0
MAX_CALLS = 200
MIN_ROUNDS = 8
MAX_ROUNDS = 60
SLOW_MS, SLOW_ROUNDS = 50.0, 2
"""Calls that take longer than this are not warmed up before each burst, and the least rounds are
fewer: what disturbs a call lasts no longer for it."""

HOPELESS = 1.5
"""How many times the time of the fastest one may take and be timed on: what is slower than that is
not chosen, and its time is known well enough."""


@dataclass(frozen=True, slots=True)
class CallTimes:
    """The time of a call in milliseconds, by name, and the rounds that it comes from.

    Shapes:
        rounds_ms: [rounds, turns]
    """

    ms: Mapping[str, float]
    rounds_ms: Mapping[str, np.ndarray]

    def speedup(self, name: str, over: str) -> Speedup:
        """How many times as fast as another one, over the rounds that both have."""
        ours, theirs = self.rounds_ms[name], self.rounds_ms[over]
        count = min(len(ours), len(theirs))
        return speedup(theirs[:count], ours[:count])


def time_calls(
    calls: Mapping[str, Callable[[], object]], seconds: float = 2.0, always: tuple[str, ...] = ()
) -> CallTimes:
    """Time some calls in rounds of two turns each, forwards and backwards, for about so long each.

    What is hopeless after the least rounds is not timed on, but for what is named in `always`.
    """
    first_ms = {name: _first_ms(call) for name, call in calls.items()}
    counts = {
        name: max(1, min(MAX_CALLS, int(BURST_MS / max(ms, 1e-4)))) for name, ms in first_ms.items()
    }
    is_slow = min(first_ms.values()) > SLOW_MS
    least = SLOW_ROUNDS if is_slow else MIN_ROUNDS
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    names = list(calls)
    deadline = time.monotonic() + seconds * len(names)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for number in range(MAX_ROUNDS):
            if number >= least and time.monotonic() > deadline:
                break
            if number == least:
                known = {name: _ms(rounds[name]) for name in names}
                limit = HOPELESS * min(known.values())
                names = [name for name in names if known[name] <= limit or name in always]
            start = number % len(names)
            order = [*names[start:], *names[:start]]
            first = {name: _burst_ms(calls[name], counts[name], is_slow) for name in order}
            second = {name: _burst_ms(calls[name], counts[name], is_slow) for name in order[::-1]}
            for name in order:
                rounds[name].append((first[name], second[name]))
            gc.collect(0)
    finally:
        if was_enabled:
            gc.enable()
    return CallTimes(
        {name: _ms(times) for name, times in rounds.items()},
        {name: np.array(times) for name, times in rounds.items()},
    )


def _first_ms(call: Callable[[], object]) -> float:
    """The fastest of some first calls."""
    fastest = _burst_ms(call, 1)
    return fastest if fastest > SLOW_MS else min(_burst_ms(call, 1) for _ in range(4))


def _burst_ms(call: Callable[[], object], count: int, is_slow: bool = False) -> float:
    if not is_slow:
        call()  # what another one has left in the caches is not its own
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e3


def _ms(times: list[tuple[float, float]]) -> float:
    return float(low_mean(np.array(times).reshape(-1)))
