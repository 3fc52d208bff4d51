"""The physical floor: no program is faster than its outputs can be written and its products made.

Writing is measured on as many bytes as the outputs have, over and over into the same memory, which
is the best case for a cache; products by a matrix multiplication of numpy's. What a candidate must
read is left out: not every program reads all of its inputs.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from passnet.judge.findings import Finding, finding

MARGIN = 0.5
"""A time below this share of the floor is impossible; the rest is for what the floor is off by."""

_NUM_REPEATS = 15
_MATRIX_SIZE = 512
_LEAST_BYTES = 1 << 16
"""Fewer bytes are written in less than the clock's grain."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least that a call can take.

    Args:
        num_bytes: of the outputs that are no views of arguments.
        write_ms: the time it takes to write them.
        flops: multiplications and additions of matrix products and convolutions.
        peak_gflops: how many of them this machine does in a nanosecond, on one thread.
        num_threads: how many threads share the work.
    """

    num_bytes: int
    write_ms: float
    flops: int
    peak_gflops: float
    num_threads: int

    @property
    def ms(self) -> float:
        """The larger of the times for writing and for arithmetic."""
        arithmetic_ms = self.flops / self.peak_gflops / 1e6 if self.flops else 0.0
        return max(self.write_ms, arithmetic_ms) / self.num_threads

    def proof(self, measured_ms: float, reference_ms: float) -> Finding | None:
        """The proof that a measured time is impossible, if it is.

        A floor that the reference is below is wrong, and proves nothing.
        """
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
"""That of a device which was not measured: it proves nothing."""


def measure_roofline(num_bytes: int, flops: int, num_threads: int) -> Roofline:
    """The floor of a graph on this machine, measured now."""
    gflops = peak_gflops() if flops else 0.0
    return Roofline(num_bytes, write_ms(num_bytes), flops, gflops, num_threads)


def write_ms(num_bytes: int) -> float:
    """The least time in which so many bytes were written; 0 for few."""
    if num_bytes < _LEAST_BYTES:
        return 0.0
    memory = np.zeros(num_bytes, np.uint8)
    return min(_timed_ms(lambda: memory.fill(1)) for _ in range(_NUM_REPEATS))


@cache
def peak_gflops() -> float:
    """The most operations in a nanosecond that a matrix product of numpy's reached, a thread."""
    matrix = np.ones((_MATRIX_SIZE, _MATRIX_SIZE), np.float32)
    least_ms = min(_timed_ms(lambda: matrix @ matrix) for _ in range(_NUM_REPEATS))
    return 2 * _MATRIX_SIZE**3 / least_ms / 1e6


def _timed_ms(action: Callable[[], object]) -> float:
    """In the processor's time, as other work on the machine makes no program's floor higher.

    What several threads share takes less of this one's, and the floor is too low.
    """
    start = time.thread_time()
    action()
    return (time.thread_time() - start) * 1e3
