"""The memory that judge and worker share: inputs, outputs, and the control page."""

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from passnet.core.records.dtypes import Array, storage
from passnet.graph.spec import TensorSpec
from passnet.graph.values.inputs import InputValue
from passnet.judge.protocol.messages import InputLayout

ALIGNMENT = 64
"""Every tensor starts at a multiple of this many bytes, as torch's own allocator has it."""

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class SharedMemory:
    """Anonymous memory that another process can map, sealed so that none can shrink it."""

    def __init__(self, name: str, num_bytes: int) -> None:
        self.num_bytes = max(num_bytes, 1)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.num_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
        self.map = mmap.mmap(self.fd, self.num_bytes)

    def close(self) -> None:
        """Release the memory; arrays that view it keep it mapped."""
        os.close(self.fd)

    def array(self, dtype: str, shape: Sequence[int], offset: int) -> Array:
        """Return a view of a part as an array in the storage type of `dtype`."""
        count = int(np.prod(shape, dtype=np.int64))
        flat: Any = np.frombuffer(self.map, storage(dtype), count, offset)
        return flat.reshape(tuple(shape))


def aligned(num_bytes: int) -> int:
    """Return the next multiple of `ALIGNMENT`."""
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def lay_out(
    specs: Sequence[TensorSpec], input_sets: Sequence[Sequence[InputValue]]
) -> tuple[tuple[InputLayout, ...], int]:
    """Lay out every argument of every set, set by set; return the layouts and all their bytes."""
    position = 0
    offsets: list[list[int]] = [[] for _ in specs]
    for values in input_sets:
        for index, value in enumerate(values):
            if not isinstance(value, int):
                offsets[index].append(position)
                position = aligned(position + value.nbytes)
    layouts = tuple(
        InputLayout("", (), (), number=value)
        if isinstance(value, int)
        else InputLayout(spec.dtype, spec.shape, tuple(argument_offsets))
        for spec, value, argument_offsets in zip(specs, input_sets[0], offsets, strict=True)
    )
    return layouts, position


def lay_out_slots(
    layouts: Sequence[InputLayout], num_slots: int
) -> tuple[tuple[InputLayout, ...], int]:
    """Lay out the arguments of each call of a burst; return the layouts and their bytes."""
    position = 0
    offsets: list[list[int]] = [[] for _ in layouts]
    for _ in range(num_slots):
        for index, layout in enumerate(layouts):
            if layout.number is None:
                offsets[index].append(position)
                count = int(np.prod(layout.shape, dtype=np.int64))
                position = aligned(position + count * storage(layout.dtype).itemsize)
    slots = tuple(
        layout
        if layout.number is not None
        else InputLayout(layout.dtype, layout.shape, tuple(argument_offsets))
        for layout, argument_offsets in zip(layouts, offsets, strict=True)
    )
    return slots, position


class ControlPage:
    """The pages that hold the judge's orders to a worker, in 64-bit words.

    While the worker stands still, the judge writes the order's number, the order, and the number of
    calls. The worker obeys, writes the addresses of all calls' outputs from `OUTPUTS` on, sets
    `DONE` to the order's number, and stops itself.
    """

    GO, DONE, ORDER, COUNT, ASIDE, OUTPUTS = 0, 1, 2, 3, 4, 8
    CALL, EMPTY, FREE, OBSERVE, LEAVE, IDLE, WARM = 0, 1, 2, 3, 4, 9, 10
    """Orders: call the graph on so many slots; do all of that but the calls; free all outputs; call
    once, and note the torch ops of replacements; go back to messages; sleep for so many
    milliseconds; keep `ASIDE` bytes aside until the next such order, so that calls allocate
    elsewhere, and call on so many slots, freeing the outputs."""
    HOLD, OVERHEAD = 11, 12
    """Orders: keep the outputs of the last burst until the end; call a graph that does nothing, in
    the way of calling `ASIDE` (its number in `messages.OVERHEADS`), on so many slots."""
    UP, DOWN, DOWN_ALL, REPEAT = 5, 6, 7, 8
    """Orders for a device: copy the arguments of so many slots up; copy down the outputs of the
    calls whose numbers stand at `OUTPUTS`; the arguments of those calls too; call so many times on
    one slot."""

    def __init__(self, page: mmap.mmap) -> None:
        self.words = memoryview(page).cast("q")

    @classmethod
    def num_calls(cls, order: int, count: int) -> int | None:
        """Return the calls of an order; None for one that is observed, where patterns run too."""
        if order == cls.OBSERVE:
            return None
        return count if order in (cls.CALL, cls.WARM, cls.REPEAT) else 0

    @staticmethod
    def num_bytes(num_slots: int, num_outputs: int) -> int:
        """Return the bytes that hold the addresses of all outputs of so many calls."""
        words = ControlPage.OUTPUTS + num_slots * max(num_outputs, 1)
        return -(-words * 8 // mmap.PAGESIZE) * mmap.PAGESIZE
