"""One measurement at a time on a device, over all processes of the machine."""

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
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as cause:
        raise MeasureError(f"cannot open {path}: {cause.strerror}") from cause
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
