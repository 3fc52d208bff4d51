"""The roofline: the rates of this machine, and the least time of a graph at these rates, T_sol.

A call must read the values that its outputs depend on, write its outputs, and compute: none of this
goes faster than the machine did it by itself. Source: SOL-ExecBench (arXiv 2603.19173), Section 4.
"""

from collections.abc import Collection
from dataclasses import dataclass

from passnet.core.hardware import Hardware
from passnet.judge.verdict.findings import Finding, finding

MARGIN = 0.5
"""A time below this share of T_sol is impossible; the rest allows for errors of the rates."""


@dataclass(frozen=True, slots=True)
class MachineRates:
    """The highest rates that a machine reached, a second."""

    hardware: Hardware
    memory: tuple[tuple[int, float, float, float], ...]
    """Sizes in bytes, and the bytes that are read, written, and copied from half to half."""
    products: dict[str, float]
    """Operations of matrix products by dtype."""
    elementwise: dict[str, float]
    """Operations in registers by dtype; none where they were not measured."""

    def of_memory(self, num_bytes: int) -> tuple[float, float]:
        """Return the bytes moved and written a second in so much memory.

        Larger memory is no faster: its rates count too, as those of the next smaller size do.
        """
        least = max((row[0] for row in self.memory if row[0] <= num_bytes), default=0)
        rows = [row for row in self.memory if row[0] >= least]
        return max(max(row[1:]) for row in rows), max(row[2] for row in rows)


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least work of a call of a graph, and the rates of the machine for it."""

    bytes_read: int
    bytes_written: int
    products: int
    """Multiplications and additions of matrix products and convolutions."""
    elementwise: int
    moved_per_s: float
    """Bytes a second, read and written together."""
    written_per_s: float
    products_per_s: float
    elementwise_per_s: float

    @property
    def parts_ms(self) -> dict[str, float]:
        """Return the least milliseconds of each part of the work, in words."""
        moved = self.bytes_read + self.bytes_written
        parts = {
            f"moving {moved} bytes": (moved, self.moved_per_s),
            f"writing {self.bytes_written} bytes": (self.bytes_written, self.written_per_s),
            f"{self.products} operations of products": (self.products, self.products_per_s),
            f"{self.elementwise} operations on values": (self.elementwise, self.elementwise_per_s),
        }
        return {words: 1e3 * work / rate for words, (work, rate) in parts.items() if work and rate}

    @property
    def ms(self) -> float:
        """Return T_sol: the least time of a call, if all its parts overlap."""
        return max(self.parts_ms.values(), default=0.0)

    def proof(self, measured_ms: float, reference_ms: float) -> Finding | None:
        """Return the proof that a time is impossible, if the floor suits the reference."""
        least_ms = MARGIN * self.ms
        if measured_ms >= least_ms or reference_ms < least_ms:
            return None
        parts = self.parts_ms
        slowest = max(parts, key=lambda words: parts[words])
        text = (
            f"{measured_ms * 1e3:.1f} us a call is impossible: {slowest} takes "
            f"{self.ms * 1e3:.1f} us ({MARGIN:.0%} of that is allowed)"
        )
        return finding("physical_floor", text)


def roofline_of(
    work: tuple[int, int, int, int], dtypes: Collection[str], rates: MachineRates
) -> Roofline:
    """Return the roofline of work (bytes read and written, operations of products, elementwise).

    Of several dtypes the fastest counts.
    """
    numbers = tuple(
        max((by_dtype[name] for name in dtypes if name in by_dtype), default=0.0)
        for by_dtype in (rates.products, rates.elementwise)
    )
    return Roofline(*work, *rates.of_memory(work[0] + work[1]), *numbers)
