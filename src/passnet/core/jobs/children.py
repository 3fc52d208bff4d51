"""Python child processes: how passnet starts them and makes sure that they end."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

SPIN = "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    for _ in range(10**6): pass"
"""A program that spins until its parent ends."""


def python_command(*words: str) -> list[str]:
    """Return the command of this Python, which imports nothing from the current directory."""
    return [sys.executable, "-P", *words]


def python_environment() -> dict[str, str]:
    """Return this process's environment with absolute, non-empty entries in PYTHONPATH."""
    if "PYTHONPATH" not in os.environ:
        return dict(os.environ)
    folders = [folder for folder in os.environ["PYTHONPATH"].split(os.pathsep) if folder]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, folders))}


@contextmanager
def spinning(num_processes: int) -> Iterator[list[int]]:
    """Keep cores busy with spinning processes for the length of the block; yield their ids."""
    command = python_command("-S", "-c", SPIN, str(os.getpid()))
    with ExitStack() as stack:
        pids = []
        for _ in range(num_processes):
            process = subprocess.Popen(command, env=python_environment())
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids


def end_with_parent() -> None:
    """Let the OS kill this process when the thread that started it ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans(does_adopt: bool = True) -> None:
    """Adopt orphaned descendants, so that `end_descendants` reaches them, or stop doing so."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(does_adopt), 0, 0, 0)


def end_with_descendants(child: int) -> None:
    """Kill a child, stopped first, and all its descendants; the caller waits for the child."""
    with suppress(ProcessLookupError, ChildProcessError):  # it has ended
        os.kill(child, signal.SIGSTOP)
        os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        descendants = _descendants(child)
        for pid in (child, *descendants):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def end_descendants() -> None:
    """Kill all descendants of this process; give up after half a second."""
    for _ in range(50):
        children = _descendants(os.getpid())
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not children:
            break
        time.sleep(0.01)


def _descendants(pid: int) -> list[int]:
    """Return the running descendants of a process."""
    by_parent: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):  # a process that has ended meanwhile
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    by_parent.setdefault(int(fields[1]), []).append(int(folder.name))
    descendants = list(by_parent.get(pid, ()))
    for child in descendants:  # the list grows in the loop
        descendants += by_parent.get(child, ())
    return descendants
