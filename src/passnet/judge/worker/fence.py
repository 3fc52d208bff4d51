"""Pages without access around every tensor that torch makes from now on in this process, for a run
that is not timed (fence.cpp).

A tensor begins at a multiple of 64 bytes, as torch's own do, so that what lies within 64 bytes
behind its end may be of the same page: such reads are legal vector tails, and are seen by what they
do to the values, since those bytes are filled; writes are seen by the bytes.
"""

import ctypes

import torch

from passnet.judge.protocol.shared_memory import ALIGNMENT

LAYOUTS = ((True, 0xFF), (False, 0x7F))
"""Whether tensors end at a page without access or begin at one, and the byte that lies in them
until they are written, and beside them: NaN, and the largest numbers, in every floating dtype."""


class Fence:
    """The allocator of a library that `processes.fence_library` has made; there is no way back."""

    def __init__(self, library: str, alignment: int = ALIGNMENT) -> None:
        self._library = ctypes.CDLL(library)
        self._name = self._library.passnet_fence_name
        self._name.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._alignment = alignment

    def lay_out(self, number: int) -> None:
        """Lay out tensors that are made from now on as one of `LAYOUTS` has it, in turn."""
        at_end, fill = LAYOUTS[number % len(LAYOUTS)]
        self._library.passnet_fence_lay_out(at_end, self._alignment, fill)

    def name(self, tensor: torch.Tensor, argument: int) -> None:
        """Say which argument of the graph a tensor is."""
        self._name(tensor.data_ptr(), argument)

    def check(self) -> None:
        """End this process by SIGSEGV if something was written beside a tensor that is there."""
        self._library.passnet_fence_check()
