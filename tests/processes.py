"""Processes of a test: whether one runs, and waiting until something holds."""

import time
from collections.abc import Callable
from pathlib import Path

from passnet.core.jobs.children import stat_of


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state not in ("Z", "X")
    except OSError:
        return False


def wait_until(is_so: Callable[[], bool], complaint: str, seconds: float = 10) -> None:
    """Wait until something holds; fail with the complaint if it does not in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.02)


def zombies(parent: int) -> list[int]:
    """The ended children of a process that it has not waited for."""
    stats = [(int(path.name), *stat_of(int(path.name))) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid, state, its_parent in stats if (state, its_parent) == ("Z", parent)]
