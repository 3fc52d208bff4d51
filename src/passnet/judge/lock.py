"""One measurement at a time on a device, over all processes of the machine and all its users."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from passnet.errors import MeasureError


@contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold a device for the length of the block; waits for whoever holds it.

    Args:
        device: "cpu", "cuda:0", …

    Raises:
        MeasureError: the lock file cannot be opened.
    """
    path = Path(tempfile.gettempdir()) / f"passnet-{device.replace(':', '')}.lock"
    try:
        fd = _opened(path)
    except OSError as cause:
        raise MeasureError(f"cannot open {path}: {cause.strerror}") from cause
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _opened(path: Path) -> int:
    """The lock file, made if need be; another user's can be read, which is enough to lock it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
