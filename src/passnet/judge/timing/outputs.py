"""Outputs of a burst, read by the judge while the worker stands still.

Ordinary memory is read from outside, without the worker's help. From a device the worker copies
outputs at the judge's order to memory that both share.
"""

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from passnet.core.records.dtypes import Array
from passnet.judge.processes.loaded_worker import LoadedWorker, output_offsets
from passnet.judge.protocol.shared_memory import SharedMemory
from passnet.judge.timing.probes import ProbedPlaces, as_arrays, read_places, read_whole


class _MemoryOutputs:
    def __init__(self, loaded: LoadedWorker) -> None:
        self._loaded = loaded
        self._pointers: list[list[int]] = []

    def fetch(self, calls: Sequence[int], pointers: list[list[int]], is_whole: bool) -> int | None:
        """Prepare to read calls of the last burst; return the nanoseconds of any delivery."""
        self._pointers = [pointers[number] for number in calls]
        return None

    def places(self, call: int, probes: Sequence[ProbedPlaces]) -> list[bytes]:
        """Return the bytes at some places, as `probes.read_places` does."""
        return read_places(self._loaded.worker, self._pointers[call], self._loaded.forms, probes)

    def whole(self, call: int) -> list[bytes]:
        """Return all outputs of a call as they are now, one after the other."""
        return read_whole(self._loaded.worker, self._pointers[call], self._loaded.forms)

    def arrays(self, whole: Sequence[bytes]) -> list[Array | None]:
        """Return the result of `whole` as arrays; None unless a tensor."""
        return as_arrays(whole, self._loaded.forms)


class _DeliveredOutputs:
    """Outputs on a device, read like `_MemoryOutputs`; see `output_reader`."""

    def __init__(
        self,
        loaded: LoadedWorker,
        memory: SharedMemory,
        deliver: Callable[[Sequence[int], bool], int],
    ) -> None:
        self._forms = []
        for form in loaded.forms:
            strides = tuple(math.prod(form.shape[dim + 1 :]) for dim in range(len(form.shape)))
            self._forms.append(msgspec.structs.replace(form, stride=strides))
        self._offsets, self._num_bytes = output_offsets(loaded.forms)
        self._memory = memory
        self._deliver = deliver

    def fetch(self, calls: Sequence[int], pointers: list[list[int]], is_whole: bool) -> int | None:
        return self._deliver(calls, is_whole)

    def places(self, call: int, probes: Sequence[ProbedPlaces]) -> list[bytes]:
        return [self._of(call, probe) for probe in probes]

    def whole(self, call: int) -> list[bytes]:
        arrays = [self._array(call, number) for number in range(len(self._forms))]
        return [b"" if array is None else array.tobytes() for array in arrays]

    def arrays(self, whole: Sequence[bytes]) -> list[Array | None]:
        return as_arrays(whole, self._forms)

    def _array(self, call: int, number: int) -> Array | None:
        form, offset = self._forms[number], self._offsets[number]
        if offset is None:
            return None
        return self._memory.array(form.dtype, form.shape, offset + call * self._num_bytes)

    def _of(self, call: int, probe: ProbedPlaces) -> bytes:
        array = self._array(call, probe.output)
        assert array is not None, "places are drawn in tensors"
        parts = []
        for index in probe.indices.tolist():
            window = [slice(start, start + 1) for start in index]
            if probe.run > 1:
                window[probe.axis] = slice(index[probe.axis], index[probe.axis] + probe.run)
            parts.append(array[tuple(window)].tobytes())
        return b"".join(parts)


OutputReader: TypeAlias = _MemoryOutputs | _DeliveredOutputs
"""Reads outputs while the worker holds them and stands still."""


def output_reader(
    loaded: LoadedWorker, memory: SharedMemory | None, deliver: Callable[[Sequence[int], bool], int]
) -> OutputReader:
    """Return the reader of a worker's outputs.

    `deliver` copies the outputs of some calls of the last burst from a device to `memory`, with or
    without the arguments of these calls, and returns the nanoseconds that it took.
    """
    return _DeliveredOutputs(loaded, memory, deliver) if memory else _MemoryOutputs(loaded)
