"""How long threads wait for a processor, by the kernel's account."""

from pathlib import Path

OWN_THREAD = "thread-self"
"""The thread that asks, as a name for `waited_ns`."""


def waited_ns(thread: int | str) -> int:
    """Nanoseconds that a thread, since it began, was ready to run and another ran in its place.

    The second number of `/proc/<pid>/schedstat` (Linux, Documentation/scheduler/sched-stats.rst);
    0 where the kernel does not say.

    Args:
        thread: its number, as this process sees it, or `OWN_THREAD`.
    """
    try:
        return int(Path(f"/proc/{thread}/schedstat").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0
