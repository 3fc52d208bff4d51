"""A worker that is no process: its words are written by a test before the judge asks for them."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from passnet.judge.processes.worker_process import Worker, bounded_log
from passnet.judge.protocol.channel import channel_pair
from passnet.judge.protocol.messages import WorkerEnded, WorkerLimits

HEADER = struct.Struct("<Q")
NUM_UNREAD = 40_000
"""Bytes of a message that fit into a socket beside shorter ones, before anybody reads them."""


def framed(message: Any) -> bytes:
    """The bytes that say a message, or JSON in its place, as an honest worker says it."""
    payload = message if isinstance(message, bytes) else msgspec.json.encode(message)
    return HEADER.pack(len(payload)) + payload


class FakeParent:
    """Stands for the process that forks workers: all it gives is one worker, whose memory is that
    of this process, and which has said some words before it is asked, and then hung up.
    """

    is_confined = is_shared = False

    def __init__(self, words: Iterable[bytes], fds: Sequence[int] = ()) -> None:
        channel, theirs = channel_pair()
        theirs.settimeout(1)  # for tests that say too much
        with theirs:
            for said in words:
                if fds and said:
                    socket.send_fds(theirs, [said[:1]], fds)
                    said = said[1:]
                theirs.sendall(said)
            theirs.shutdown(socket.SHUT_WR)
            self._unread = theirs.dup()  # requests are taken and never read
        memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        log = bounded_log()
        self.worker = Worker(os.getpid(), os.getpid(), memory, channel, log, self)

    def fork(self, _: WorkerLimits) -> Worker:
        """The worker."""
        return self.worker

    def end(self, pid: int, is_awaited: bool = True) -> WorkerEnded:
        """As if it had been killed."""
        self._unread.close()
        return WorkerEnded(-9)
