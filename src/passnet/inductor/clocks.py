"""The cost of our clocks, inside and outside of the time that they measure."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Clock: TypeAlias = Callable[[], int]
"""A function that returns nanoseconds; only differences have a meaning."""

WALL: Clock = time.perf_counter_ns
OWN: Clock = time.thread_time_ns
"""Wall time, and CPU time of this thread, whose reading takes a third of a microsecond."""

OWN_FROM_MS = 1.0
"""Shortest call of one thread that `OWN` times; few this long run without interruption."""

NUM_CALLS = 200
NUM_REPEATS = 30


@dataclass(frozen=True, slots=True)
class ClockCost:
    """Nanoseconds that our clocks cost, `within` and `beside` the time that they measure.

    A kernel clock is around one kernel, a layer clock around a graph or a generated program; `sums`
    is a program's cost of handing its clocks' sums on.
    """

    kernel_within: float
    kernel_beside: float
    layer_within: float
    graph_beside: float
    program_beside: float
    sums: float


def layer_with_clock(
    inner: Callable[..., Any], spent: list[int], slot: int, count: int, clock: Clock
) -> Callable[..., Any]:
    """Return a wrapper that adds a call's nanoseconds to `spent[slot]`, 1 to `spent[count]`."""

    def layer(*arguments: Any) -> Any:
        start = clock()
        returned = inner(*arguments)
        spent[slot] += clock() - start
        spent[count] += 1
        return returned

    return layer


def least_kernel_clock(clock: Clock) -> tuple[float, float]:
    """Return a kernel clock's least nanoseconds within and beside the measured time."""
    return min((_kernel_clocks(clock) for _ in range(NUM_REPEATS)), key=sum)


def least_layer_clock(clock: Clock) -> tuple[float, float]:
    """Return the same for a layer around a function."""
    return min((_layer_clocks(clock) for _ in range(NUM_REPEATS)), key=sum)


def _kernel_clocks(_clock: Clock) -> tuple[float, float]:
    """Measure the clocks of a generated program around nothing."""
    _generated = 0
    begin = _clock()
    for _ in range(NUM_CALLS):
        _start = _clock()
        _generated += _clock() - _start
    with_clocks = _clock() - begin
    begin = _clock()
    for _ in range(NUM_CALLS):
        pass
    without = _clock() - begin
    within = _generated / NUM_CALLS
    return within, max(0.0, (with_clocks - without) / NUM_CALLS - within)


def _nothing(*_: Any) -> None:
    return None


def _layer_clocks(clock: Clock) -> tuple[float, float]:
    """Measure a layer around a function that does nothing."""
    spent = [0, 0]
    layer = layer_with_clock(_nothing, spent, 0, 1, clock)
    argument: list[int] = []
    begin = clock()
    for _ in range(NUM_CALLS):
        layer(argument)
    with_layer = clock() - begin
    begin = clock()
    for _ in range(NUM_CALLS):
        _nothing(argument)
    without = clock() - begin
    inner = without / NUM_CALLS
    within = max(0.0, spent[0] / NUM_CALLS - inner)
    return within, max(0.0, (with_layer - without) / NUM_CALLS - within)
