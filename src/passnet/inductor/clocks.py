"""What our clocks cost: within the time that they tell, and beside it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Clock: TypeAlias = Callable[[], int]
"""Gives nanoseconds; only differences mean something."""

WALL: Clock = time.perf_counter_ns
OWN: Clock = time.thread_time_ns
"""What goes by, and what this thread has computed: that leaves out the time in which something else
had the processor. It takes a third of a microsecond to ask."""

OWN_FROM_MS = 1.0
"""Calls of one thread that take longer are timed by `OWN`: hardly a burst of them is left alone
where there is other work."""

NUM_CALLS = 200
NUM_REPEATS = 30


@dataclass(frozen=True, slots=True)
class ClockCost:
    """Nanoseconds of our clocks: `within` the time that one tells, and `beside` it.

    Args:
        kernel_within, kernel_beside: of one around a kernel.
        layer_within: of one around what Dynamo calls, or around a generated program.
        graph_beside, program_beside: of these.
        sums: of what a generated program does beside its clocks to hand on what they told.
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
    """A function that calls another one, adds to `spent` at `slot` what that took in nanoseconds,
    and 1 at `count`.
    """

    def layer(*arguments: Any) -> Any:
        start = clock()
        returned = inner(*arguments)
        spent[slot] += clock() - start
        spent[count] += 1
        return returned

    return layer


def least_kernel_clock(clock: Clock) -> tuple[float, float]:
    """Nanoseconds of a clock in a generated program, within the time it tells and beside it: the
    least of many tries.
    """
    return min((_kernel_clocks(clock) for _ in range(NUM_REPEATS)), key=sum)


def least_layer_clock(clock: Clock) -> tuple[float, float]:
    """The same of a layer around a function."""
    return min((_layer_clocks(clock) for _ in range(NUM_REPEATS)), key=sum)


def _kernel_clocks(_clock: Clock) -> tuple[float, float]:
    """Of the clocks in a generated program, with nothing to tell the time of."""
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
    """Of a layer around a function that does nothing."""
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
