"""Memory that judge and worker share: inputs, outputs, and the page on which calls are timed."""

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from passnet.graph.inputs import InputValue
from passnet.graph.spec import TensorSpec
from passnet.judge.protocol.messages import InputLayout
from passnet.records.dtypes import Array, storage

ALIGNMENT = 64
"""Every tensor starts at a multiple of this many bytes, as torch's own allocator has it."""

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


class SharedMemory:
    """Anonymous memory of a fixed size that another process can map.

    It is sealed against resizing: a process that shrank it could make the other one fault.
    """

    def __init__(self, name: str, num_bytes: int) -> None:
        self.num_bytes = max(num_bytes, 1)
        self.fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.num_bytes)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _SEALS)
        self.map = mmap.mmap(self.fd, self.num_bytes)

    def close(self) -> None:
        """Give the memory back; arrays that still look at it keep it mapped."""
        os.close(self.fd)

    def array(self, dtype: str, shape: Sequence[int], offset: int) -> Array:
        """A view of a part as an array in the storage type of `dtype`."""
        count = int(np.prod(shape, dtype=np.int64))
        flat: Any = np.frombuffer(self.map, storage(dtype), count, offset)
        return flat.reshape(tuple(shape))


def aligned(num_bytes: int) -> int:
    """The next multiple of `ALIGNMENT`."""
    return -(-num_bytes // ALIGNMENT) * ALIGNMENT


def lay_out(
    specs: Sequence[TensorSpec], input_sets: Sequence[Sequence[InputValue]]
) -> tuple[tuple[InputLayout, ...], int]:
    """Where every argument of every set goes, set by set, and how many bytes that takes."""
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


class ControlPage:
    """The page on which the judge starts calls and sees them end, in 64-bit words.

    The judge writes a command, then counts `GO` up. The worker works, writes the addresses of its
    outputs from `OUTPUTS` on, and sets `DONE` to the same number. The judge looks at the outputs
    and sets `FREE`; the worker lets go of them, or where `KEEP` says so holds them until the next
    call is free, and sets `READY`. `WARM`, `BURST` and `STOP` have no outputs and end with `DONE`.
    Where outputs lie on a device, the judge has them delivered before it sets `FREE`.
    """

    GO, DONE, FREE, READY, COMMAND, KEEP, COUNT, OUTPUTS = 0, 1, 2, 3, 4, 5, 6, 8
    CALL, NOTHING, WARM, STOP = 0, 1, 2, 3
    """Commands: call the graph; do all of a call but the call; get the inputs ready; leave the
    page."""

    BURST, DELIVER, DELIVER_ALL, DELIVER_HELD = 4, 5, 6, 7
    """More commands: call the graph `COUNT` times in a row; copy the outputs to where the judge can
    read them; the arguments too; copy the outputs that are still held."""

    def __init__(self, page: mmap.mmap) -> None:
        self.words = memoryview(page).cast("q")
