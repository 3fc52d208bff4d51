"""One measurement at a time on a device, in the order of arrival, over all processes and users.

The queue is a file of locks that Linux releases when their holder ends, however it ends. Byte 0 is
read-locked by all who prepare, and write-locked by the one who measures. Whoever wants either takes
a ticket, the first byte behind all locked ones, and waits until no lower one is locked.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shlex
import signal
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from passnet.core.jobs.children import descendants, stat_of
from passnet.errors import MeasureError
from passnet.judge.protocol.device import lock_name

ANNOUNCED_AFTER_S = 5.0
"""Seconds of waiting before the log names the holders; a turn of measuring is shorter."""

MIN_RUN_S = 0.5
"""Shortest time that a preparation goes on before it stands still again."""

LONGEST_STOP_S = 2.0
"""Longest time for stopped processes to leave their processors."""

_LOCK = struct.Struct("hhqqi4x")
"""`struct flock` of Linux: kind, whence, start, length, process."""
_TICKET = struct.Struct("<qQ")
"""The contents of a ticket in the file: the holder's process and process namespace."""

_log = logging.getLogger("passnet")
_current = threading.local()


class DeviceTurns:
    """A device that many processes prepare for at a time, and that one measures on alone.

    CUDA_VISIBLE_DEVICES says which GPU "cuda" is. After `announced_after_s` seconds of waiting the
    log names the process that measures. A preparation goes on for `min_run_s` at least before it
    gives way again. Raises MeasureError if the lock file cannot be opened.
    """

    def __init__(
        self,
        device: str,
        announced_after_s: float = ANNOUNCED_AFTER_S,
        min_run_s: float = MIN_RUN_S,
    ) -> None:
        self._announced_after_s = announced_after_s
        self._min_run_s = min_run_s
        self._path = Path(tempfile.gettempdir()) / f"passnet-{lock_name(device)}.turns"
        self.waited_s = 0.0
        """Seconds spent waiting for others."""

    def __enter__(self) -> DeviceTurns:
        try:
            self._fd = _opened(self._path)
        except OSError as cause:
            raise MeasureError(f"cannot open {self._path}: {cause.strerror}") from cause
        self._before = getattr(_current, "turns", None)
        self._prepare()
        _current.turns = self
        return self

    def __exit__(self, *_: object) -> None:
        _current.turns = self._before
        os.close(self._fd)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the device for the length of the block; wait for all who came before."""
        self._lock(fcntl.F_UNLCK, 0)
        _current.turns = None
        with self._waiting():
            ticket = self._take_ticket()
            self._lock(fcntl.F_WRLCK, 0, does_wait=True)
        try:
            yield
        finally:
            self._lock(fcntl.F_RDLCK, 0)
            self._lock(fcntl.F_UNLCK, ticket)
            self._since = time.monotonic()
            _current.turns = self

    def give_way(self, pid: int) -> float:
        """Let those measure who wait, while a process and its sandbox stand still.

        Returns the seconds for which they did.
        """
        if time.monotonic() - self._since < self._min_run_s or self._locked_from(1) is None:
            return 0.0
        start = time.monotonic()
        with _standing_still(pid):
            self._lock(fcntl.F_UNLCK, 0)
            self._prepare()
        return time.monotonic() - start

    def _prepare(self) -> None:
        with self._waiting():
            ticket = self._take_ticket()
            self._lock(fcntl.F_RDLCK, 0, does_wait=True)
        self._lock(fcntl.F_UNLCK, ticket)
        self._since = time.monotonic()

    def _take_ticket(self) -> int:
        """Take a ticket and return it once it is the lowest."""
        ticket = 1
        while True:
            while (locked := self._locked_from(ticket)) is not None:
                ticket = locked + 1
            with suppress(BlockingIOError, PermissionError):  # taken in this very moment
                self._lock(fcntl.F_WRLCK, ticket)
                break
        os.pwrite(self._fd, _TICKET.pack(os.getpid(), _namespace()), ticket * _TICKET.size)
        while (lower := self._locked_from(1, ticket)) is not None:
            self._lock(fcntl.F_RDLCK, lower, does_wait=True)
            self._lock(fcntl.F_UNLCK, lower)
        return ticket

    def _lock(self, kind: int, byte: int, does_wait: bool = False) -> None:
        command = fcntl.F_OFD_SETLKW if does_wait else fcntl.F_OFD_SETLK
        fcntl.fcntl(self._fd, command, _LOCK.pack(kind, os.SEEK_SET, byte, 1, 0))

    def _locked_from(self, start: int, stop: int = 0) -> int | None:
        """Return a byte in a range that others have locked; a stop of 0 is the end of all."""
        if stop == start:
            return None
        asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, max(stop - start, 0), 0)
        kind, _, byte, *_ = _LOCK.unpack(fcntl.fcntl(self._fd, fcntl.F_OFD_GETLK, asked))
        return None if kind == fcntl.F_UNLCK else max(byte, start)

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Count the time of the block as waiting, and announce the holder if it is long."""
        start = time.perf_counter()
        announcement = threading.Timer(self._announced_after_s, self._announce)
        announcement.daemon = True
        announcement.start()
        try:
            with turn_waits.counted():
                yield
        finally:
            announcement.cancel()
            self.waited_s += time.perf_counter() - start

    def _announce(self) -> None:
        """Log the process that measures, unless it is only another thread of this one."""
        first, pid = self._locked_from(1), None
        if first is not None:
            content = os.pread(self._fd, _TICKET.size, first * _TICKET.size)
            if len(content) == _TICKET.size:
                holder, namespace = _TICKET.unpack(content)
                pid = holder if namespace == _namespace() else None
        if pid != os.getpid():
            named = "others" if pid is None else f"process {pid}{_command(pid)}"
            _log.warning("waiting to measure: %s is held by %s", self._path, named)


class TurnWaits:
    """The time for which this process has waited for its turns, the present one included."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._mutex = threading.Lock()
        self._num_waiting = 0
        self._seconds = 0.0
        self._since = 0.0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the time of the block; blocks of several threads at a time count once."""
        self._move(1)
        try:
            yield
        finally:
            self._move(-1)

    def seconds(self) -> float:
        """Return the time so far."""
        return self._move(0)

    def _move(self, step: int) -> float:
        with self._mutex:
            now = self._clock()
            if self._num_waiting:
                self._seconds += now - self._since
            self._since = now
            self._num_waiting += step
            return self._seconds


turn_waits = TurnWaits()


def give_way(pid: int) -> float:
    """Give way to others if this thread prepares; see `DeviceTurns.give_way`."""
    turns = getattr(_current, "turns", None)
    return 0.0 if turns is None else turns.give_way(pid)


@contextmanager
def _standing_still(pid: int) -> Iterator[None]:
    """Stop a worker and its sandbox, all below the parent of workers, for the block.

    A process that has stopped itself is not continued.
    """
    parent = stat_of(pid)[1]
    top = pid if parent in (0, 1, os.getpid()) else parent
    stopped: list[int] = []
    try:
        while running := [
            each
            for each in (top, *descendants(top))
            if each not in stopped and stat_of(each)[0] not in "TtZX"
        ]:
            for each in running:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(each, signal.SIGSTOP)
            stopped += running
        deadline = time.monotonic() + LONGEST_STOP_S
        while any(stat_of(each)[0] not in "TtZX" for each in stopped):
            if time.monotonic() > deadline:
                break
            time.sleep(0.001)
        yield
    finally:
        for each in reversed(stopped):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(each, signal.SIGCONT)


def _namespace() -> int:
    return Path("/proc/self/ns/pid").stat().st_ino


def _command(pid: int) -> str:
    with suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return f" ({shlex.join(word.decode(errors='replace') for word in words if word)[:200]})"
    return ""


def _opened(path: Path) -> int:
    """Open the lock file, which all users may write, made if need be."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileNotFoundError):
        return os.open(path, flags)
    with suppress(FileExistsError):
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666)
        os.fchmod(fd, 0o666)
        return fd
    return os.open(path, flags)
