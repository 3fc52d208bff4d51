"""A socket that carries length-prefixed messages and file descriptors."""

import errno
import os
import select
import socket
import struct
import time
from contextlib import ExitStack, suppress
from typing import Any, TypeVar

import msgspec

from passnet.errors import is_exhausted

MAX_MESSAGE_BYTES = 128 * 2**20
"""Longest message accepted from the judge; the text of the largest real graph has 4 MB."""
MAX_REPLY_BYTES = 4 * 2**20
"""Longest message that the judge accepts: honest ones have a few kilobytes, decoded up to ten times
that."""
SEND_TIMEOUT_S = 30.0
"""Seconds for the other side to read a message that does not fit into the socket."""

_HEADER = struct.Struct("<Q")
_MAX_FDS = 4

T = TypeVar("T")


class ChannelClosedError(Exception):
    """The other side is gone, or cannot be understood."""


class NoMessageError(ChannelClosedError):
    """The other side sent bytes that are no message."""


class ChannelTimeoutError(Exception):
    """The other side did not answer in time."""


class Channel:
    """One end of a connected Unix socket, with a limit on the bytes of a received message."""

    def __init__(self, sock: socket.socket, max_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._socket = sock
        self._max_bytes = max_bytes

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; the other side sees the end."""
        self._socket.close()

    def hang_up(self) -> None:
        """Close the socket for all who have it, also for a thread that waits for a message."""
        with suppress(OSError):  # the other side was first
            self._socket.shutdown(socket.SHUT_RDWR)
        self.close()

    def send(self, message: Any, fds: tuple[int, ...] = ()) -> None:
        """Send a message and any file descriptors, or raise ChannelClosedError."""
        payload = msgspec.json.encode(message)
        try:
            self._socket.settimeout(SEND_TIMEOUT_S)
            socket.send_fds(self._socket, [_HEADER.pack(len(payload))], fds)
            self._socket.sendall(payload)
        except OSError as cause:
            raise ChannelClosedError(str(cause)) from cause

    def receive(self, kind: Any, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """Return the next message, decoded as `kind` (a type or union), and the descriptors with
        it.

        Without a timeout for the whole message it waits for ever.

        Raises ChannelTimeoutError, ChannelClosedError, NoMessageError for bytes that are no such
        message, or OSError if this process has no room for another descriptor.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            with ExitStack() as unclaimed:
                self._wait(deadline)
                header, fds, flags, _ = socket.recv_fds(self._socket, _HEADER.size, _MAX_FDS)
                for fd in fds:
                    unclaimed.callback(os.close, fd)
                if flags & socket.MSG_CTRUNC and len(fds) < _MAX_FDS:  # the OS dropped some
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
                header += self._exactly(_HEADER.size - len(header), deadline)
                (size,) = _HEADER.unpack(header)
                if size > self._max_bytes:
                    raise NoMessageError(f"a message of {size} bytes, longer than any")
                message = msgspec.json.decode(self._exactly(size, deadline), type=kind)
                unclaimed.pop_all()
                return message, fds
        except TimeoutError as cause:
            raise ChannelTimeoutError from cause
        except OSError as cause:
            if is_exhausted(cause):
                raise
            raise ChannelClosedError(str(cause)) from cause
        except (ValueError, RecursionError) as cause:  # not UTF-8, or brackets without end
            raise NoMessageError(f"not a message: {cause}") from cause

    def readable(self, timeout_s: float = 0.0) -> bool:
        """Wait up to so many seconds; return whether a message, or the end, can be received."""
        return bool(select.select([self._socket], [], [], max(timeout_s, 0.0))[0])

    def _wait(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_s)

    def _exactly(self, size: int, deadline: float | None) -> bytearray:
        payload = bytearray(size)
        remaining = memoryview(payload)
        while remaining:
            self._wait(deadline)
            num_read = self._socket.recv_into(remaining)
            if not num_read:
                raise ChannelClosedError("end of stream")
            remaining = remaining[num_read:]
        return payload


def channel_pair() -> tuple[Channel, socket.socket]:
    """Return the judge's end of a channel, and the socket for the other end."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(near, MAX_REPLY_BYTES), far
