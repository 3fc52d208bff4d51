"""Processes that end when their parent does, or when it says so."""

import ctypes
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, however that happens.

    The parent is the thread that has made this process: where that is one of many, the process
    ends with the thread.
    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans(does_adopt: bool = True) -> None:
    """Whether processes whose parent ends become children of this one, if they are below it, so
    that `end_descendants` reaches them too.
    """
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(does_adopt), 0, 0, 0)


def end_with_descendants(child: int) -> None:
    """Kill a child of this process and all below it, of which it starts no more meanwhile.

    For children whose own children do not end with them, or not yet. The caller still has to wait
    for the child.
    """
    with suppress(ProcessLookupError, ChildProcessError):  # it has ended
        os.kill(child, signal.SIGSTOP)
        os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        below = _descendants(child)
        for pid in (child, *below):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def end_descendants() -> None:
    """Kill every process that this one has started, and those that they have, at once.

    What the kernel does not end within half a second is left to it.
    """
    for _ in range(50):
        children = _descendants(os.getpid())
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not children:
            break
        time.sleep(0.01)


def _descendants(pid: int) -> list[int]:
    """The processes below one that have not ended."""
    by_parent: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # one that has ended meanwhile
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    by_parent.setdefault(int(fields[1]), []).append(int(folder.name))
    below = list(by_parent.get(pid, ()))
    for child in below:  # which grows meanwhile
        below += by_parent.get(child, ())
    return below
