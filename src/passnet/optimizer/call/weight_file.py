"""The weights of the copy of a large net: in memory of their own, and in a file for children.

A child maps the file instead of copying it. While it works, the memory of the copy is free.
"""

import copy
import mmap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from passnet.errors import naming
from passnet.optimizer.call.values import is_dense

LARGE_BYTES = 1 << 27
"""A net with so many bytes of weights is large: its children map a file, and at most one folded
copy of its weights is in memory.
"""

ALIGNMENT = 64
"""Bytes to which torch aligns tensors."""

STEP = 1 << 22
"""Bytes moved at once, whole pages."""


@dataclass(frozen=True, slots=True)
class WeightPlace:
    """The place of a weight in the file: its storage, in bytes, and its form in that."""

    start: int
    num_bytes: int
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


class WeightFile:
    """Storages one after the other in memory, and the path of a file of the same bytes, which
    may not be written yet.
    """

    def __init__(self, path: Path, memory: mmap.mmap) -> None:
        self.path, self.is_written = path, False
        self._memory, self._storages = memory, dict[int, torch.UntypedStorage]()

    @classmethod
    def mapped(cls, path: Path) -> "WeightFile":
        """Map a file privately: writes into its weights do not reach it."""
        with path.open("rb") as file:
            return cls(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))

    @classmethod
    def of_copies(
        cls, path: Path, weights: Iterable[torch.Tensor]
    ) -> tuple["WeightFile", dict[Any, Any]]:
        """Copy weights, of those in the processor's memory; the file is not written yet.

        Return it, and a memo by which `copy.deepcopy` finds the copies.
        """
        here = [weight for weight in weights if _has_storage(weight)]
        storages = {weight.untyped_storage()._cdata: weight.untyped_storage() for weight in here}
        starts, size = {}, 0
        for number, storage in storages.items():
            starts[number] = size
            size += -(-storage.nbytes() // ALIGNMENT) * ALIGNMENT
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        made = cls(path, mmap.mmap(-1, max(size, 1), flags=flags))
        # torch looks up copied storages by this key, and copies parameters without it
        memo: dict[Any, Any] = {"torch": {}}
        for number, storage in storages.items():
            memo["torch"][number] = made.storage(starts[number], storage.nbytes()).copy_(storage)
        for weight in here:
            if type(weight) is torch.nn.Parameter:
                copied = copy.deepcopy(weight.data, memo)
                memo[id(weight)] = torch.nn.Parameter(copied, weight.requires_grad)
        return made, memo

    def storage(self, start: int, num_bytes: int) -> torch.UntypedStorage:
        """Return the storage that begins at some byte; the same one each time."""
        if start not in self._storages:
            form: Mapping[str, Any] = {"dtype": torch.uint8, "count": num_bytes, "offset": start}
            self._storages[start] = torch.frombuffer(self._memory, **form).untyped_storage()
        return self._storages[start]

    def place(self, weight: torch.Tensor) -> WeightPlace | None:
        """Return the place of a weight, None where it is elsewhere."""
        if not _has_storage(weight) or weight.is_conj() or weight.is_neg():
            return None
        own = weight.untyped_storage()
        for start, storage in self._storages.items():
            if storage.data_ptr() == own.data_ptr() and storage.nbytes() == own.nbytes():
                form = int(weight.storage_offset()), tuple(weight.shape), weight.stride()
                return WeightPlace(start, own.nbytes(), *form, weight.dtype)
        return None

    def weight(self, place: WeightPlace) -> torch.Tensor:
        """Return the weight at a place."""
        storage = self.storage(place.start, place.num_bytes)
        made = torch.empty(0, dtype=place.dtype)
        return made.set_(storage, place.offset, place.shape, place.strides)

    def write(self) -> None:
        """Write the file."""
        with naming(self.path), self.path.open("wb") as file:
            file.write(self._memory)
        self.is_written = True

    @contextmanager
    def away(self) -> Iterator[None]:
        """Free the memory, as far as the file holds its values, for a while."""
        freed = []
        try:
            with self.path.open("rb") as file:
                for start in range(0, len(self._memory), STEP):
                    step = file.read(STEP)
                    if self._memory[start : start + STEP] == step:
                        freed.append(start)
                        self._memory.madvise(mmap.MADV_DONTNEED, start, len(step))
            yield
        finally:
            with self.path.open("rb") as file:
                for start in freed:
                    file.seek(start)
                    step = file.read(STEP)
                    self._memory[start : start + len(step)] = step


def _has_storage(weight: torch.Tensor) -> bool:
    is_here = is_dense(weight) and weight.device.type == "cpu"
    return is_here and weight.untyped_storage().nbytes() > 0
