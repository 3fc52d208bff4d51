"""One measurement at a time on a device, over all processes of the machine and all its users."""

from __future__ import annotations

import fcntl
import logging
import os
import shlex
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from passnet.errors import MeasureError
from passnet.judge.protocol.device import lock_name

ANNOUNCED_AFTER_S = 5.0
"""Seconds of waiting before the log names the holders; a turn of measuring is shorter."""

_log = logging.getLogger("passnet")


class DeviceTurns:
    """A device that many processes prepare for at a time, and that one measures on alone.

    CUDA_VISIBLE_DEVICES says which GPU "cuda" is. After `announced_after_s` seconds of waiting the
    log names the processes that hold the device. Raises MeasureError if the lock file cannot be
    opened.
    """

    def __init__(self, device: str, announced_after_s: float = ANNOUNCED_AFTER_S) -> None:
        self._announced_after_s = announced_after_s
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
        """Hold the device for the length of the block; wait for all who prepare or measure."""
        self._take(fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._take(fcntl.LOCK_SH)

    def _take(self, kind: int) -> None:
        with suppress(BlockingIOError):
            fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
            return
        start = time.perf_counter()
        announcement = threading.Timer(self._announced_after_s, self._announce)
        announcement.daemon = True
        announcement.start()
        try:
            fcntl.flock(self._fd, kind)
        finally:
            announcement.cancel()
        self.waited_s += time.perf_counter() - start

    def _announce(self) -> None:
        """Log the processes that hold the lock, unless it is only another thread of this one."""
        pids = _holders(self._fd)
        if pids and set(pids) == {os.getpid()}:
            return
        named = [f"process {pid}{_command(pid)}" for pid in pids if pid != os.getpid()]
        _log.warning(
            "waiting to measure: %s is held by %s", self._path, ", ".join(named) or "others"
        )


def _holders(fd: int) -> list[int]:
    inode = str(os.fstat(fd).st_ino)
    holders = []
    with suppress(OSError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()  # "1: FLOCK ADVISORY WRITE 4711 00:2f:181 0 EOF"; "->" one waits
            if words[1] == "FLOCK" and words[5].endswith(f":{inode}"):
                holders.append(int(words[4]))
    return [pid for pid in dict.fromkeys(holders) if pid > 0]


def _command(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f" ({shlex.join(word.decode(errors='replace') for word in words if word)[:200]})"
    return ""


def _opened(path: Path) -> int:
    """Open the lock file, made if need be; another user's can be read, which is enough."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
