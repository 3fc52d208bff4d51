"""One measurement at a time on a device, over all processes of the machine and all its users."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from passnet.errors import MeasureError
from passnet.judge.protocol.device import lock_name


class DeviceTurns:
    """A device on which many get ready at a time, and one measures while nobody gets ready.

    Entering waits for whoever measures; inside, others get ready as well. Which GPU "cuda" is,
    CUDA_VISIBLE_DEVICES says.

    Raises:
        MeasureError: the lock file cannot be opened.
    """

    def __init__(self, device: str) -> None:
        self._path = Path(tempfile.gettempdir()) / f"passnet-{lock_name(device)}.lock"
        self.waited_s = 0.0
        """Seconds spent waiting for others."""

    def __enter__(self) -> DeviceTurns:
        try:
            self._fd = _opened(self._path)
        except OSError as cause:
            raise MeasureError(f"cannot open {self._path}: {cause.strerror}") from cause
        self._take(fcntl.LOCK_SH)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device for the length of the block; waits for all who get ready, or measure."""
        self._take(fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._take(fcntl.LOCK_SH)

    def _take(self, kind: int) -> None:
        start = time.perf_counter()
        fcntl.flock(self._fd, kind)
        self.waited_s += time.perf_counter() - start


def _opened(path: Path) -> int:
    """The lock file, made if need be; another user's can be read, which is enough to lock it."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
