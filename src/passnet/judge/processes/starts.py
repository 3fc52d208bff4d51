"""The judge's answers to a sandbox that asks to start processes and threads.

A confined worker, with all it started, asks by a filter of system calls (seccomp_unotify(2)) that
was set before any candidate code came to it, and waits for the answer. While it loads, the answer
is yes, up to a limit. While it is timed, it may start threads of its own, which stop with it and
whose CPU time is its own, but no process: nothing else can run then.
"""

import errno
import fcntl
import os
import platform
import select
import struct
import threading
from contextlib import suppress
from pathlib import Path

_REQUEST = struct.Struct("QIIiI6QQ")
"""struct seccomp_notif: number, process, flags, and seccomp_data (linux/seccomp.h)."""
_ANSWER = struct.Struct("QqiI")
"""struct seccomp_notif_resp: number, value, error, flags."""
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}.get(platform.machine(), -1)
_CLONE_THREAD = 0x10000
_ALLOW = 1
"""SECCOMP_USER_NOTIF_FLAG_CONTINUE."""


def _ioctl(number: int, size: int) -> int:
    """Return the request of an ioctl that reads and writes a record (asm-generic/ioctl.h)."""
    return 3 << 30 | size << 16 | ord("!") << 8 | number


_RECEIVE, _SEND = _ioctl(0, _REQUEST.size), _ioctl(1, _ANSWER.size)


class Starts:
    """The processes and threads that one sandbox may start; close it.

    There may be `most` processes in its `/proc`, or threads in one, at a time. `num_refused` counts
    requests that were refused, as if a limit of the user was reached (EAGAIN).
    """

    def __init__(self, listener: int, most: int, proc: Path) -> None:
        self.num_refused = 0
        self._most = most
        self._proc = proc
        self._only_threads = False
        self._listener = listener
        self._lock = threading.Lock()
        self._end, self._ending = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._serve, name="passnet-starts", daemon=True)
        self._thread.start()

    def refuse_processes(self) -> None:
        """Allow only threads from now on, and count refusals from now on."""
        with self._lock:
            self._only_threads, self.num_refused = True, 0

    def close(self) -> None:
        """Answer no more; whoever still asks is told that there is no such call."""
        os.close(self._ending)
        self._thread.join()
        for fd in (self._end, self._listener):
            os.close(fd)

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._end, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._end in ready:
                return
            if not ready[self._listener] & select.POLLIN:  # nobody is left who could ask
                poll.unregister(self._listener)
                continue
            with suppress(OSError):  # whoever asked has ended, or was interrupted and asks again
                self._answer()

    def _answer(self) -> None:
        request = bytearray(_REQUEST.size)
        fcntl.ioctl(self._listener, _RECEIVE, request)
        number, pid, _, call, _, _, flags, *_ = _REQUEST.unpack(request)
        is_thread = call == _CLONE_NUMBER and bool(flags & _CLONE_THREAD)
        folder = Path(f"/proc/{pid}/task") if is_thread else self._proc
        num_living = sum(name.isdecimal() for name in os.listdir(folder))  # noqa: PTH208
        with self._lock:
            is_allowed = num_living <= self._most and (is_thread or not self._only_threads)
            self.num_refused += not is_allowed
        error, action = (0, _ALLOW) if is_allowed else (-errno.EAGAIN, 0)
        fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(number, 0, error, action))
