"""The physical floor: the time to write a program's outputs and to compute its products.

Writing is measured over and over into the same memory, the best case for a cache; products by a
matrix multiplication of numpy's. Reading is left out: not every program reads all of its inputs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from passnet.judge.verdict.findings import Finding, finding

MARGIN = 0.5
"""A time below this share of the floor is impossible; the rest allows for errors of the floor."""

_NUM_REPEATS = 15
_MATRIX_SIZE = 512
_LEAST_BYTES = 1 << 16
"""Fewer bytes are written in less than the clock's grain."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least time of a call: to write outputs that are no views, and to do products at the peak
    of one thread (`peak_gflops`, in operations a nanosecond) on all threads.
    """

    num_bytes: int
    write_ms: float
    flops: int
    peak_gflops: float
    num_threads: int

    @property
    def ms(self) -> float:
        """Return the larger of the times for writing and for arithmetic."""
        arithmetic_ms = self.flops / self.peak_gflops / 1e6 if self.flops else 0.0
        return max(self.write_ms, arithmetic_ms) / self.num_threads

    def proof(self, measured_ms: float, reference_ms: float) -> Finding | None:
        """Return the proof that a time is impossible, if the floor suits the reference."""
        least_ms = MARGIN * self.ms
        if measured_ms >= least_ms or reference_ms < least_ms:
            return None
        text = (
            f"{measured_ms * 1e3:.1f} us a call is impossible: "
            f"writing {self.num_bytes} bytes takes {self.write_ms * 1e3:.1f} us"
        )
        if self.flops:
            text += f", {self.flops} operations at {self.peak_gflops:.0f} G/s take "
            text += f"{self.flops / self.peak_gflops / 1e3:.1f} us"
        text += f" (on {self.num_threads} threads, half of that is allowed)"
        return finding("physical_floor", text)


NO_ROOFLINE = Roofline(0, 0.0, 0, 0.0, 1)
"""The floor of a device that was not measured: it proves nothing."""


def measure_roofline(num_bytes: int, flops: int, num_threads: int) -> Roofline:
    """Measure the floor of a graph on this machine."""
    gflops = peak_gflops() if flops else 0.0
    return Roofline(num_bytes, write_ms(num_bytes), flops, gflops, num_threads)


def write_ms(num_bytes: int) -> float:
    """Return the least time of writing so many bytes; 0 for few."""
    if num_bytes < _LEAST_BYTES:
        return 0.0
    memory = np.zeros(num_bytes, np.uint8)
    return min(cpu_ms(lambda: memory.fill(1)) for _ in range(_NUM_REPEATS))


@cache
def peak_gflops() -> float:
    """Return the most operations in a nanosecond that numpy's matrix product reached, a thread."""
    matrix = np.ones((_MATRIX_SIZE, _MATRIX_SIZE), np.float32)
    least_ms = min(cpu_ms(lambda: matrix @ matrix) for _ in range(_NUM_REPEATS))
    return 2 * _MATRIX_SIZE**3 / least_ms / 1e6


def cpu_ms(action: Callable[[], object]) -> float:
    """Return an action's CPU time in this thread; other work on the machine adds nothing."""
    start = time.thread_time()
    action()
    return (time.thread_time() - start) * 1e3
