"""How the judge sees the outputs of a worker's last call: in its memory, or as they are delivered.

Outputs in ordinary memory are read from outside the worker, which has no part in it. Those on a
device are copied by the worker, at the judge's command, to memory that both share.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from passnet.judge.processes.loaded_worker import LoadedWorker, output_offsets
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.protocol.shared_memory import ControlPage, SharedMemory
from passnet.judge.timing.probes import ProbedPlaces, as_arrays, read_places, read_whole
from passnet.records.dtypes import Array

NS_PER_MS = 1_000_000


class _MemoryOutputs:
    """Outputs in the worker's memory."""

    def __init__(self, loaded: LoadedWorker) -> None:
        self._loaded = loaded
        self._pointers: list[int] = []
        self._held: list[int] = []

    def delivered_ms(self, pointers: list[int]) -> float | None:
        """A call has ended, and its outputs lie there; the milliseconds that their delivery took,
        None where there is none.
        """
        self._pointers = pointers
        return None

    def places(self, probes: Sequence[ProbedPlaces]) -> list[bytes]:
        """What some places of them hold, as `probes.read_places` gives it."""
        return read_places(self._loaded.worker, self._pointers, self._loaded.forms, probes)

    def whole(self) -> list[bytes]:
        """All of them as they are now, one after the other."""
        return read_whole(self._loaded.worker, self._pointers, self._loaded.forms)

    def hold(self) -> None:
        """The worker will hold these over the next call."""
        self._held = self._pointers

    def held(self) -> list[bytes]:
        """Those that were held, as they are now."""
        return read_whole(self._loaded.worker, self._held, self._loaded.forms)

    def arrays(self, whole: Sequence[bytes]) -> list[Array | None]:
        """What `whole` gave, as arrays; None for what is no tensor."""
        return as_arrays(whole, self._loaded.forms)


class _DeliveredOutputs:
    """Outputs on a device, which are read as `_MemoryOutputs` are; see `output_reader`.

    `whole` also brings back what was made of the arguments.
    """

    def __init__(
        self, loaded: LoadedWorker, memory: SharedMemory, order: Callable[[int], int]
    ) -> None:
        self._forms = [_dense(form) for form in loaded.forms]
        self._offsets, _ = output_offsets(loaded.forms)
        self._memory = memory
        self._order = order

    def delivered_ms(self, pointers: list[int]) -> float | None:
        return self._order(ControlPage.DELIVER) / NS_PER_MS

    def places(self, probes: Sequence[ProbedPlaces]) -> list[bytes]:
        return [self._of(probe) for probe in probes]

    def whole(self) -> list[bytes]:
        return self._delivered(ControlPage.DELIVER_ALL)

    def hold(self) -> None:
        pass

    def held(self) -> list[bytes]:
        return self._delivered(ControlPage.DELIVER_HELD)

    def arrays(self, whole: Sequence[bytes]) -> list[Array | None]:
        return as_arrays(whole, self._forms)

    def _array(self, number: int) -> Array | None:
        form, offset = self._forms[number], self._offsets[number]
        return None if offset is None else self._memory.array(form.dtype, form.shape, offset)

    def _delivered(self, command: int) -> list[bytes]:
        self._order(command)
        arrays = [self._array(number) for number in range(len(self._forms))]
        return [b"" if array is None else array.tobytes() for array in arrays]

    def _of(self, probe: ProbedPlaces) -> bytes:
        array = self._array(probe.output)
        assert array is not None, "places are drawn in tensors"
        parts = []
        for index in probe.indices.tolist():
            window = [slice(start, start + 1) for start in index]
            if probe.run > 1:
                window[probe.axis] = slice(index[probe.axis], index[probe.axis] + probe.run)
            parts.append(array[tuple(window)].tobytes())
        return b"".join(parts)


OutputReader: TypeAlias = _MemoryOutputs | _DeliveredOutputs
"""Reads outputs while the worker holds them."""


def output_reader(
    loaded: LoadedWorker, memory: SharedMemory | None, order: Callable[[int], int]
) -> OutputReader:
    """How the judge sees a worker's outputs, which are delivered to `memory` if they lie on a
    device. `order` gives a command of the control page, waits for its end, and returns the
    nanoseconds between.
    """
    return _DeliveredOutputs(loaded, memory, order) if memory else _MemoryOutputs(loaded)


def _dense(form: OutputForm) -> OutputForm:
    """The form of a contiguous copy."""
    strides = tuple(math.prod(form.shape[dim + 1 :]) for dim in range(len(form.shape)))
    return msgspec.structs.replace(form, stride=strides)
