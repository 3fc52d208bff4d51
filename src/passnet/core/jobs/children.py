"""Python child processes: how passnet starts them and makes sure that they end."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

SPIN = """
import os, sys
for processor in map(int, sys.argv[2:]):
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
while os.getppid() == int(sys.argv[1]):
    for _ in range(10**6): pass
"""
"""A program that spins until its parent ends, on a processor that nobody else wants if one is
named."""


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
def spinning(num_processes: int, idle: Collection[int] = ()) -> Iterator[list[int]]:
    """Keep cores busy with spinning processes for the length of the block; yield their ids.

    So many spin like any program, and one more on each processor of `idle` that gives way to all
    others (SCHED_IDLE), so that the processor never halts.
    """
    command = python_command("-S", "-c", SPIN, str(os.getpid()))
    commands = [command] * num_processes + [[*command, str(number)] for number in sorted(idle)]
    with ExitStack() as stack:
        pids = []
        for each in commands:
            process = subprocess.Popen(each, env=python_environment())
            stack.callback(process.wait)
            stack.callback(process.kill)
            pids.append(process.pid)
        yield pids


def shares_core(processor: int, others: Collection[int]) -> bool:
    """Return whether a processor is a hardware thread of the same core as another one of some."""
    topology = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    siblings: set[int] = set()
    with suppress(OSError, ValueError):  # not told everywhere
        for span in topology.read_text("ascii").strip().split(","):
            first, _, last = span.partition("-")
            siblings.update(range(int(first), int(last or first) + 1))
    return not siblings.isdisjoint({*others} - {processor})


def end_with_parent() -> None:
    """Let Linux kill this process when the thread that started it ends; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans(does_adopt: bool = True) -> None:
    """Adopt orphaned descendants, so that `end_descendants` reaches them, or stop doing so."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(does_adopt), 0, 0, 0)


def end_with_descendants(child: int) -> list[int]:
    """Kill a child, stopped first, and all its descendants, which are returned.

    The caller waits for the child, and reaps those descendants that this process adopts.
    """
    family: list[int] = []
    with suppress(ProcessLookupError, ChildProcessError):  # it has ended
        os.kill(child, signal.SIGSTOP)
        os.waitid(os.P_PID, child, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        family = descendants(child)
        for pid in (child, *family):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return family


def end_tree(process: subprocess.Popen[bytes]) -> None:
    """Kill a child and all its descendants, and leave no zombie of them."""
    family = end_with_descendants(process.pid) if process.poll() is None else []
    process.wait()
    reap(family)


def reap(pids: Sequence[int]) -> None:
    """Wait for killed processes, as far as this one has adopted them."""
    for pid in pids:
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


def reap_adopted(started: Collection[int]) -> None:
    """Reap ended children that this process has adopted."""
    with suppress(ChildProcessError):
        options = os.WEXITED | os.WNOHANG
        while ended := os.waitid(os.P_ALL, 0, options | os.WNOWAIT):
            if ended.si_pid in started:
                return
            os.waitid(os.P_PID, ended.si_pid, options)


def end_descendants() -> None:
    """Kill all descendants of this process; give up after half a second."""
    for _ in range(50):
        children = descendants(os.getpid())
        for pid in children:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not children:
            break
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    """Return the running descendants of a process."""
    by_parent: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):  # none where there is no such folder
        state, parent = stat_of(int(folder.name))
        if state not in "ZX":
            by_parent.setdefault(parent, []).append(int(folder.name))
    found = list(by_parent.get(pid, ()))
    for child in found:  # the list grows in the loop
        found += by_parent.get(child, ())
    return found


def stat_of(pid: int) -> tuple[str, int]:
    """Return a process's state and parent as Linux has them; "X" and 0 if it has ended."""
    try:
        state, parent, *_ = stat_fields(Path(f"/proc/{pid}/stat").read_bytes())
    except OSError:
        return "X", 0
    return state.decode(), int(parent)


def stat_fields(content: bytes) -> list[bytes]:
    """Return the fields of a `stat` of /proc behind the name, which can hold anything."""
    return content.rpartition(b")")[2].split()
