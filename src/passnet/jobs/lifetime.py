"""A process that ends when its parent does."""

import ctypes
import signal

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, however that happens.

    The parent is the thread that has made this process: where that is one of many, the process
    ends with the thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
