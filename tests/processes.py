"""Processes of a test: whether one runs, and waiting until something holds."""

import time
from collections.abc import Callable
from pathlib import Path


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
