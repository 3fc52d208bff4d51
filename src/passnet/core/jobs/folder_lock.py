"""The lock on a run's folder: one process at a time works in it."""

import errno
import os
import shlex
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from passnet.core.records.serialise import decode, encode
from passnet.errors import InputError, naming

LOCK_FILE = "run.lock"

_MAX_BYTES = 2**16
"""Length of what is read of a lock file."""

_WITHOUT_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
"""Errors of file systems without locks, such as some network mounts."""


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that works in a folder: its id, machine, start and command line."""

    pid: int
    host: str
    since: str
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}: `{self.command}`"


@contextmanager
def folder_lock(folder: Path, wait_s: float = 0.0) -> Iterator[None]:
    """Keep others out of a folder for the length of the block.

    The OS releases the lock when this process ends; its children do not hold it. File systems
    without locks get none. An InputError names the process that works in the folder, if it still
    does after `wait_s` seconds.
    """
    path = folder / LOCK_FILE
    now = datetime.now().astimezone().isoformat(" ", "seconds")
    holder = LockHolder(os.getpid(), socket.gethostname(), now, shlex.join(sys.argv))
    descriptor = _locked(path, time.monotonic() + wait_s)
    try:
        with naming(path):
            os.pwrite(descriptor, encode(holder), 0)
        yield
    finally:
        with suppress(OSError):  # the folder may be gone
            path.unlink()
        os.close(descriptor)


def _locked(path: Path, until: float) -> int:
    """Open the lock file, lock it where the file system can, and return its descriptor."""
    import fcntl  # not on Windows, where runs can be read

    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as cause:
            if cause.errno == errno.ELOOP:
                raise InputError(f"{path}: a link, not a lock; remove it") from cause
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(descriptor)
            raise InputError(f"{path}: a link or no file, so not a lock; remove it")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            if time.monotonic() < until:
                os.close(descriptor)
                time.sleep(0.05)
                continue
            with os.fdopen(descriptor, "rb") as stream:
                raise InputError(_complaint(path.parent, stream.read(_MAX_BYTES))) from cause
        except OSError as cause:
            if cause.errno not in _WITHOUT_LOCKS:
                os.close(descriptor)
                raise
        with suppress(FileNotFoundError):  # whoever held it may have removed it meanwhile
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                os.truncate(descriptor, 0)  # by one that was killed
                return descriptor
        os.close(descriptor)


def _complaint(folder: Path, content: bytes) -> str:
    holder = "another process"
    with suppress(InputError):  # it may be about to write who it is
        holder = str(decode(content, LockHolder))
    return f"{folder}: in use by {holder}; wait until it ends, or choose another folder"
