"""The heap of a worker, made alike for all: its gaps are taken, so that tensors lie at its end.

A process that imported, compiled or computed other things has other gaps in its heap. A tensor in
one may be in the cache still, which makes equal programs differ by up to 10 %.
"""

import ctypes

LARGEST, SMALLEST = 2**24, 2**12
"""Bytes of gaps: the allocator keeps no larger ones, and in smaller ones no tensor matters."""
MAX_GAPS = 20_000
"""Far more gaps than any worker had; it ends the search where gaps cannot be told from the end."""


class _HeapInfo(ctypes.Structure):
    """glibc's account of its heap (mallinfo2(3), since 2.33)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
            "fordblks", "keepcost",
        )
    ]  # fmt: skip


def fill_gaps() -> int:
    """Take every free piece of the heap but its end; return their number (glibc >= 2.33)."""
    libc = ctypes.CDLL(None)
    info = getattr(libc, "mallinfo2", None)
    if info is None:
        return 0
    info.restype = _HeapInfo
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    num_gaps, size = 0, LARGEST
    while size >= SMALLEST and num_gaps < MAX_GAPS:
        end = info().keepcost
        piece = libc.malloc(size)
        if info().keepcost < end or piece is None:  # it comes from the end of the heap
            libc.free(piece)
            size //= 2
        else:
            num_gaps += 1
    return num_gaps
