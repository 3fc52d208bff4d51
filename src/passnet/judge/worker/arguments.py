"""The arguments of a worker: in the memory it shares with the judge, or on a device.

On a CPU the judge writes arguments and reads outputs in place. On a device the worker copies
arguments up before a burst, and outputs down after it, through shared memory. Copies are compared
like anything else that a worker says; their time shows work that is put off until then.
"""

import ctypes
import math
import mmap
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import torch

from passnet.judge.protocol.device import STAGED
from passnet.judge.protocol.messages import InputLayout
from passnet.judge.protocol.shared_memory import aligned
from passnet.judge.worker.fence import Fence

FLUSHED_SHARE = 2
"""Multiple of its second-level cache that a GPU writes before a burst, so that all calls begin
cold."""


class _SharedArguments:
    wait: Callable[[], None] | None = None
    """Waits until a device has done all its work; None where there is nothing to wait for."""

    def __init__(self, layouts: Sequence[InputLayout], memory: mmap.mmap) -> None:
        self._sets = _host_arguments(layouts, memory)
        self.slots: list[list[Any]] = []
        """The arguments of every call of a burst."""

    def give(self, number: int) -> list[Any]:
        """Return the arguments of a set, with the values that the judge wrote."""
        return self._sets[number]

    def settle(self, number: int) -> None:
        """Show the judge the arguments of a set after a call."""

    def place_slots(
        self, layouts: Sequence[InputLayout], memory: mmap.mmap, delivery: mmap.mmap | None
    ) -> tuple[int, ...]:
        """Place the slots of bursts; return the addresses that the judge cannot know."""
        self.slots = _host_arguments(layouts, memory)
        return ()

    def bring_up(self, count: int) -> None:
        """Copy the values of so many slots to the device."""

    def settle_slot(self, number: int) -> None:
        """Show the judge the arguments of a slot after a call."""

    def drop_slots(self) -> None:
        """Free the memory of bursts."""
        self.slots = []


class _DeviceArguments:
    """`_SharedArguments` in the memory of a device ("cuda", or `STAGED`), one copy for all sets."""

    def __init__(self, layouts: Sequence[InputLayout], memory: mmap.mmap, device: str) -> None:
        self._hosts = _host_arguments(layouts, memory)
        self._host_slots: list[list[Any]] = []
        self._pinned: list[PinnedMemory] = []
        self.slots: list[list[Any]] = []
        self._device = torch.device("cpu" if device == STAGED else device)
        self._mine = _copies(self._hosts[0], self._device)
        self.wait: Callable[[], None] | None = None
        self._flushed: torch.Tensor | None = None
        if device != STAGED:
            self.wait = torch._C._cuda_synchronize  # bound here, before any candidate's code
            PinnedMemory(memory)  # as long as this process lives
            num_bytes = FLUSHED_SHARE * torch.cuda.get_device_properties(self._device).L2_cache_size
            self._flushed = torch.empty(num_bytes, dtype=torch.uint8, device=self._device)
            self._forget = ctypes.CDLL("libcuda.so.1").cuCtxResetPersistingL2Cache

    def give(self, number: int) -> list[Any]:
        self._copy(self._hosts[number], self._mine)
        return self._mine

    def settle(self, number: int) -> None:
        self._copy(self._mine, self._hosts[number])

    def place_slots(
        self, layouts: Sequence[InputLayout], memory: mmap.mmap, delivery: mmap.mmap | None
    ) -> tuple[int, ...]:
        if self.wait is not None:
            self._pinned = [
                PinnedMemory(shared) for shared in (memory, delivery) if shared is not None
            ]
        self._host_slots = _host_arguments(layouts, memory)
        self.slots = [_copies(hosts, self._device) for hosts in self._host_slots]
        return tuple(
            copy.data_ptr() if isinstance(copy, torch.Tensor) else 0
            for copies in self.slots
            for copy in copies
        )

    def bring_up(self, count: int) -> None:
        for hosts, copies in zip(self._host_slots[:count], self.slots, strict=False):
            self._copy(hosts, copies)
        if self._flushed is not None and self.wait is not None:
            self._forget()  # persisting lines would survive the flush
            self._flushed.zero_()
            self.wait()

    def settle_slot(self, number: int) -> None:
        self._copy(self.slots[number], self._host_slots[number])

    def drop_slots(self) -> None:
        for pinned in self._pinned:
            pinned.release()
        self._pinned, self._host_slots, self.slots = [], [], []

    def _copy(self, sources: Sequence[Any], targets: Sequence[Any]) -> None:
        _copy(sources, targets)
        if self.wait is not None:
            self.wait()


class FencedArguments:
    """Arguments within a fence, copied for every call, and never called in bursts."""

    wait: Callable[[], None] | None = None

    def __init__(self, layouts: Sequence[InputLayout], memory: mmap.mmap, fence: Fence) -> None:
        self._hosts = _host_arguments(layouts, memory)
        self._mine: list[Any] = []
        self._fence = fence

    def give(self, number: int) -> list[Any]:
        """Return new copies of the arguments of a set, laid out by its number."""
        self._fence.lay_out(number)
        self._mine = _copies(self._hosts[number], torch.device("cpu"))
        _copy(self._hosts[number], self._mine)
        for index, argument in enumerate(self._mine):
            if isinstance(argument, torch.Tensor):
                self._fence.name(argument, index)
        return self._mine

    def settle(self, number: int) -> None:
        """Show the judge the arguments after a call; end here if it wrote beside a tensor."""
        _copy(self._mine, self._hosts[number])
        self._fence.check()


WorkerArguments: TypeAlias = _SharedArguments | _DeviceArguments | FencedArguments
"""The placement of arguments."""


def place_arguments(
    layouts: Sequence[InputLayout], memory: mmap.mmap, device: str, fence: str | None
) -> WorkerArguments:
    """Place the arguments of a graph on a device; `fence` is a fence library, or None."""
    if fence is not None:
        return FencedArguments(layouts, memory, Fence(fence))
    if device == "cpu":
        return _SharedArguments(layouts, memory)
    return _DeviceArguments(layouts, memory, device)


def _copy(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    for source, target in zip(sources, targets, strict=True):
        if isinstance(source, torch.Tensor):
            target.copy_(source, non_blocking=True)


def _copies(hosts: Sequence[Any], device: torch.device) -> list[Any]:
    return [
        torch.empty_like(host, device=device) if isinstance(host, torch.Tensor) else host
        for host in hosts
    ]


def _host_arguments(layouts: Sequence[InputLayout], memory: mmap.mmap) -> list[list[Any]]:
    num_sets = max([len(layout.offsets) for layout in layouts], default=1) or 1
    return [[_argument(layout, memory, number) for layout in layouts] for number in range(num_sets)]


def copy_out(outputs: Sequence[Any], memory: mmap.mmap) -> None:
    """Copy outputs into shared memory, dense and one after the other; numbers are left out."""
    position = 0
    for output in outputs:
        if isinstance(output, torch.Tensor):
            if output.numel():
                target = torch.frombuffer(
                    memory, dtype=output.dtype, count=output.numel(), offset=position
                )
                target.view(output.shape).copy_(output)
            position = aligned(position + output.numel() * output.element_size())


def _forget_error() -> None:
    """Clear CUDA's error of a failed call: the next launch of a kernel would fail for it."""
    with suppress(RuntimeError):
        torch.ones(1, device="cuda")


class PinnedMemory:
    """Shared memory that is locked where allowed, so that a GPU copies to and from it at full
    speed.

    Release it before it is unmapped: the next mapping at its address would count as locked.
    """

    def __init__(
        self,
        memory: mmap.mmap,
        runtime: Any = None,
        forget_error: Callable[[], None] = _forget_error,
    ) -> None:
        cuda: Any = torch.cuda
        self._runtime = runtime or cuda.cudart()
        self._forget_error = forget_error
        self._address = torch.frombuffer(memory, dtype=torch.uint8).data_ptr()
        self._is_locked = not int(self._runtime.cudaHostRegister(self._address, len(memory), 0))
        if not self._is_locked:
            forget_error()

    def release(self) -> None:
        """Unlock it."""
        if self._is_locked and int(self._runtime.cudaHostUnregister(self._address)):
            self._forget_error()
        self._is_locked = False


def _argument(layout: InputLayout, memory: mmap.mmap, number: int) -> Any:
    if layout.number is not None:
        return layout.number
    dtype = getattr(torch, layout.dtype)
    count = math.prod(layout.shape)
    if count == 0:
        return torch.empty(layout.shape, dtype=dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=layout.offsets[number])
    return flat.view(layout.shape)
