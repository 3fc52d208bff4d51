"""All processes of a sandbox, by Linux's lists, and the memory and CPU time that they use in all.

A process whose first thread has ended, and which so seems to have no memory, is counted too.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from passnet.core.jobs.children import stat_fields

FIRST_PID = 1
"""The number inside a sandbox of the parent of its workers."""
_PAGE_BYTES = os.sysconf("SC_PAGESIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_ENDED = (b"Z", b"X", b"x")
_STAT_BYTES = 4096
"""More than the files `stat` and `statm` of a process have."""


@dataclass(frozen=True, slots=True)
class Resident:
    """A process with threads that have not ended: its memory, and the CPU time of all of them.

    The time includes that of ended children that it has waited for.
    """

    pid: int
    num_bytes: int
    cpu_s: float


class SandboxUse:
    """The memory and CPU time of a sandbox since now, by the process number of one inside it.

    Memory is that of its processes and of its private folders; it may grow by `max_bytes`.
    """

    def __init__(self, pid: int, folders: Sequence[str], max_bytes: int) -> None:
        self._root = Path(f"/proc/{pid}/root")
        self._folders = folders
        self._max_bytes = max_bytes
        self._first_bytes = self._resident_bytes()
        self._first_own_bytes: int = self._own_bytes()

    def pids(self) -> list[int]:
        """Return the processes that can still run, by their numbers inside."""
        return [process.pid for process in self._processes()]

    def cpu_s(self) -> float:
        """Return the CPU time of all processes; that of ended ones counts once somebody waited."""
        return sum(process.cpu_s for process in self._processes())

    def excess(self) -> str | None:
        """Return a sentence if it uses too much memory; None if not, or if it has ended."""
        if self._resident_bytes() - self._first_bytes <= self._max_bytes:  # a bound from above
            return None
        num_bytes = self._own_bytes() - self._first_own_bytes
        if num_bytes <= self._max_bytes:
            return None
        return f"{num_bytes >> 20} MiB in all processes and files, {self._max_bytes >> 20} allowed"

    def _resident_bytes(self) -> int:
        """Return the resident memory of all processes, shared pages once for each."""
        return self._file_bytes() + sum(process.num_bytes for process in self._processes())

    def _own_bytes(self) -> int:
        """Return the memory of all processes, shared pages divided among their owners."""
        total = self._file_bytes()
        for process in self._processes():
            with suppress(OSError):  # it ends meanwhile
                path = self._root / "proc" / str(process.pid) / "smaps_rollup"
                share = path.read_bytes().partition(b"\nPss:")[2]
                total += int(share.split(None, 1)[0]) << 10
        return total

    def _processes(self) -> list[Resident]:
        """Return the processes that can still run; none once the sandbox has ended."""
        with suppress(OSError):
            return list(residents(self._root / "proc"))
        return []

    def _file_bytes(self) -> int:
        total = 0
        for folder in self._folders:
            with suppress(OSError):
                use = os.statvfs(f"{self._root}{folder}")
                total += (use.f_blocks - use.f_bfree) * use.f_frsize
        return total


def residents(proc: Path) -> Iterator[Resident]:
    """Return the processes in a `/proc` that can still run; a process in no such list has ended."""
    for name in os.listdir(proc):  # noqa: PTH208 (asked in every turn)
        if name.isdecimal():
            with suppress(OSError):  # it ends meanwhile
                if (found := _resident(int(name), f"{proc}/{name}")) is not None:
                    yield found


def _resident(pid: int, folder: str) -> Resident | None:
    """Return a process; None if all its threads have ended.

    The memory of the first thread tells nothing of the others once it has ended.
    """
    for task in os.listdir(f"{folder}/task"):  # noqa: PTH208
        with suppress(OSError):
            if stat_fields(_content(f"{folder}/task/{task}/stat"))[0] not in _ENDED:
                # Times of all threads, also of those that have ended.
                times = stat_fields(_content(f"{folder}/stat"))
                num_pages = int(_content(f"{folder}/task/{task}/statm").split()[1])
                cpu_s = sum(map(int, times[11:15])) / _TICKS
                return Resident(pid, num_pages * _PAGE_BYTES, cpu_s)
    return None


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _STAT_BYTES)
    finally:
        os.close(descriptor)
