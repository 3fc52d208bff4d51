"""The roofline: the rates of this machine, and the least time of a graph at these rates, T_sol.

A call must read the values that its outputs depend on, write its outputs, and compute: none of this
goes faster than the machine did it by itself. Source: SOL-ExecBench (arXiv 2603.19173), Section 4.
"""

import hashlib
import logging
import subprocess
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from passnet.core.hardware import Hardware, processor_name, torch_minor_version
from passnet.core.jobs.children import python_command, python_environment
from passnet.core.records.folders import cache_folder, is_private
from passnet.core.records.serialise import decode, encode, read_json, write_json
from passnet.errors import InputError, MeasureError
from passnet.judge.protocol.device import find_device, kind_of
from passnet.judge.verdict.findings import Finding, finding

MARGIN = 0.5
"""A time below this share of T_sol is impossible; the rest allows for errors of the rates."""

_PROGRAM = "passnet.judge.worker.rates"
_TIMEOUT_S = 300.0
_log = logging.getLogger("passnet")


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


@cache
def known_rates(num_threads: int = 1, device: str = "cpu") -> MachineRates | None:
    """Return the rates of this machine; None, with a warning, if they cannot be measured."""
    try:
        return machine_rates(num_threads, device)
    except MeasureError as cause:
        _log.warning("no roofline: %s", cause)
        return None


def machine_rates(
    num_threads: int = 1,
    device: str = "cpu",
    is_again: bool = False,
    measure: Callable[[Hardware], MachineRates] | None = None,
) -> MachineRates:
    """Return the rates of this machine, cached or measured, which takes some seconds.

    Raises:
        MeasureError: they cannot be measured, as without a compiler.
        InputError: there is no such device.
    """
    name = find_device(device) or processor_name()
    hardware = Hardware(kind_of(device), name, num_threads, torch_minor_version())
    key = hashlib.sha256(encode(hardware)).hexdigest()[:32]
    path = cache_folder("rates") / f"{key}.json"
    if not is_again and path.is_file() and is_private(path):
        try:
            return read_json(path, MachineRates)
        except InputError as cause:
            _log.warning("%s; measured again", cause)
    rates = (measure or _measured)(hardware)
    write_json(path, rates)
    path.chmod(0o644)
    return rates


def _measured(hardware: Hardware) -> MachineRates:
    command = python_command("-m", _PROGRAM, hardware.device, str(hardware.num_threads))
    settings: dict[str, Any] = {"env": python_environment(), "cwd": "/", "timeout": _TIMEOUT_S}
    try:
        run = subprocess.run(command, capture_output=True, check=True, **settings)
    except subprocess.TimeoutExpired as cause:
        raise MeasureError(f"measuring rates took more than {_TIMEOUT_S:.0f} s") from cause
    except subprocess.CalledProcessError as cause:
        words = cause.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise MeasureError(f"rates cannot be measured: {' '.join(words)}") from cause
    found = decode(run.stdout, dict[str, Any], "rates")
    return decode(encode({**found, "hardware": asdict(hardware)}), MachineRates, "rates")
