"""A socket that carries length-prefixed messages and file descriptors."""

import select
import socket
import struct
import time
from typing import Any, TypeVar

import msgspec

MAX_MESSAGE_BYTES = 128 * 2**20
"""Longest message accepted; the text of the largest real graph has 4 MB."""

_HEADER = struct.Struct("<Q")
_MAX_FDS = 4

T = TypeVar("T")


class ChannelClosedError(Exception):
    """The other side is gone, or said something that is no message."""


class ChannelTimeoutError(Exception):
    """The other side did not answer in time."""


class Channel:
    """One end of a connected Unix socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket; the other side sees the end."""
        self._socket.close()

    def send(self, message: Any, fds: tuple[int, ...] = ()) -> None:
        """Send a message, with file descriptors if any.

        Raises:
            ChannelClosedError: the other side is gone.
        """
        payload = msgspec.json.encode(message)
        try:
            self._socket.settimeout(None)
            socket.send_fds(self._socket, [_HEADER.pack(len(payload))], fds)
            self._socket.sendall(payload)
        except OSError as cause:
            raise ChannelClosedError(str(cause)) from cause

    def receive(self, kind: Any, timeout_s: float | None = None) -> tuple[Any, list[int]]:
        """The next message, decoded as `kind` (a message type or a union of them), and the
        descriptors that came with it. Without a timeout for the whole message it waits for ever.

        Raises:
            ChannelTimeoutError: nothing, or not all of it, came in time.
            ChannelClosedError: the other side is gone, or the bytes are no such message.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            self._wait(deadline)
            header, fds, _, _ = socket.recv_fds(self._socket, _HEADER.size, _MAX_FDS)
            if len(header) < _HEADER.size:
                header += self._exactly(_HEADER.size - len(header), deadline)
            (size,) = _HEADER.unpack(header)
            if size > MAX_MESSAGE_BYTES:
                raise ChannelClosedError(f"a message of {size} bytes")
            payload = self._exactly(size, deadline)
        except TimeoutError as cause:
            raise ChannelTimeoutError from cause
        except OSError as cause:
            raise ChannelClosedError(str(cause)) from cause
        try:
            return msgspec.json.decode(payload, type=kind), fds
        except (msgspec.DecodeError, RecursionError) as cause:
            raise ChannelClosedError(f"not a message: {cause}") from cause

    def readable(self) -> bool:
        """Whether a message, or the end, is there to be received."""
        return bool(select.select([self._socket], [], [], 0)[0])

    def _wait(self, deadline: float | None) -> None:
        if deadline is None:
            self._socket.settimeout(None)
            return
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._socket.settimeout(remaining_s)

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        parts = []
        while size:
            self._wait(deadline)
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise ChannelClosedError("end of stream")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def channel_pair() -> tuple[Channel, socket.socket]:
    """A channel, and the socket for its other end."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(near), far
