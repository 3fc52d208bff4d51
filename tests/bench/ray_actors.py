"""The actors of a run on a Ray cluster that judge, found by the processes that they started."""

from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes that a process started, and those that these started."""
    below: list[int] = []
    with suppress(OSError):  # it has ended
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            for child in map(int, task.read_text().split()):
                below += [child, *children(child)]
    return below


def judges_of(driver: int) -> list[int]:
    """The actors of a driver that judge: those that started parents of workers."""
    named = {}
    for pid in children(driver):
        with suppress(OSError):  # it has ended
            named[pid] = Path(f"/proc/{pid}/cmdline").read_bytes()
    return [
        pid
        for pid, words in named.items()
        if words.startswith(b"ray::_Actor")
        and any(b"zygote" in named.get(child, b"") for child in children(pid))
    ]
