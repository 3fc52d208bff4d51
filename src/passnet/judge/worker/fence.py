"""Pages without access around every tensor of this process, for an untimed run (fence.cpp).

A tensor begins at a multiple of 64 bytes, as torch's own do, so 64 bytes behind its end may be in
the same page. Reads there are legal vector tails; they show in the values, writes in the bytes.
"""

import ctypes

import torch

from passnet.judge.protocol.shared_memory import ALIGNMENT

LAYOUTS = ((True, 0xFF), (False, 0x7F))
"""Two layouts, which end at a page without access (True) or begin at one, and the byte that fills
tensors and the room around them: NaN, and the largest numbers, in every floating dtype."""


class Fence:
    """The allocator of a fence library; once set, it stays."""

    def __init__(self, library: str, alignment: int = ALIGNMENT) -> None:
        self._library = ctypes.CDLL(library)
        self._name = self._library.passnet_fence_name
        self._name.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._alignment = alignment

    def lay_out(self, number: int) -> None:
        """Lay out new tensors by one of `LAYOUTS`, in turn."""
        at_end, fill = LAYOUTS[number % len(LAYOUTS)]
        self._library.passnet_fence_lay_out(at_end, self._alignment, fill)

    def name(self, tensor: torch.Tensor, argument: int) -> None:
        """Name the argument of the graph that a tensor is."""
        self._name(tensor.data_ptr(), argument)

    def check(self) -> None:
        """End this process by SIGSEGV if something was written beside a live tensor."""
        self._library.passnet_fence_check()
