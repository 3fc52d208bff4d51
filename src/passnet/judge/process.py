"""The judge's hold on its processes: the parent of workers, and the workers it forks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from passnet.errors import WorkerError
from passnet.judge.channel import Channel, ChannelClosedError, ChannelTimeoutError, channel_pair
from passnet.judge.messages import (
    Failed,
    ParentReply,
    Ready,
    Reap,
    Reaped,
    Reply,
    Spawn,
    Spawned,
)
from passnet.judge.status import Status

START_TIMEOUT_S = 180.0
FORK_TIMEOUT_S = 30.0
LOG_TAIL_BYTES = 600

_STEADY_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(4 * 2**30),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
"""Settings of glibc's allocator that keep freed pages. Left to itself it gives them back or not
depending on what the process did before, which moves equal programs apart by over 10 %."""


@dataclass
class WorkerFailureError(Exception):
    """A request to a worker ended badly: how, and in which words."""

    status: Status
    error: str
    text: str

    def __str__(self) -> str:
        return f"{self.error}: {self.text}" if self.text else self.error


class WorkerParent:
    """The process that forks workers, with torch imported and warm.

    Args:
        num_threads: threads of every worker, for torch's and a kernel's own loops.
    """

    def __init__(self, num_threads: int = 1) -> None:
        self._num_threads = num_threads

    def __enter__(self) -> WorkerParent:
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        count = str(self._num_threads)
        environment = dict(
            os.environ,
            OMP_NUM_THREADS=count,
            MKL_NUM_THREADS=count,
            OPENBLAS_NUM_THREADS=count,
            OMP_WAIT_POLICY="PASSIVE",
            **_STEADY_MALLOC,
            TORCHINDUCTOR_COMPILE_THREADS="1",
            PYTHONDONTWRITEBYTECODE="1",
            CUDA_VISIBLE_DEVICES=os.environ.get("CUDA_VISIBLE_DEVICES", ""),
        )
        self._process = subprocess.Popen(
            [sys.executable, "-m", "passnet.judge.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
        )
        theirs.close()
        self._channel = Channel(mine)
        try:
            ready = self._ask(None, Ready, START_TIMEOUT_S)
        except BaseException:
            self.__exit__()
            raise
        self.torch_version: str = ready.torch_version
        self.start_s: float = ready.seconds
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()
        self._process.kill()
        self._process.wait()

    def _ask(self, request: Any, kind: type, timeout_s: float, fds: tuple[int, ...] = ()) -> Any:
        try:
            if request is not None:
                self._channel.send(request, fds)
            reply, _ = self._channel.receive(ParentReply, timeout_s)
        except ChannelTimeoutError as cause:
            raise WorkerError(f"the parent of workers did not answer in {timeout_s:.0f} s") from (
                cause
            )
        except ChannelClosedError as cause:
            raise WorkerError("the parent of workers ended; its messages are above") from cause
        assert isinstance(reply, kind), f"expected {kind.__name__}, got {reply}"
        return reply

    def fork(self, memory_mib: int) -> Worker:
        """A fresh worker; close it (or use it as a context manager).

        Args:
            memory_mib: how much it may map beyond what it starts with.
        """
        channel, theirs = channel_pair()
        log = tempfile.TemporaryFile()  # noqa: SIM115 (the worker's close() closes it)
        fds = (theirs.fileno(), log.fileno())
        reply = self._ask(Spawn(memory_mib), Spawned, FORK_TIMEOUT_S, fds)
        theirs.close()
        return Worker(reply.pid, channel, log, self)

    def reap(self, pid: int) -> int:
        """Wait for a worker that has ended; its exit code, negative for a signal."""
        return self._ask(Reap(pid), Reaped, FORK_TIMEOUT_S).code


class Worker:
    """One forked worker."""

    def __init__(self, pid: int, channel: Channel, log: Any, parent: WorkerParent) -> None:
        self._pid = pid
        self._channel = channel
        self._log = log
        self._parent = parent
        self._open = True

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> int:
        """End the worker and its process group; its exit code."""
        if not self._open:
            return 0
        self._open = False
        self._channel.close()
        self._kill()
        code = self._parent.reap(self._pid)
        self._log.close()
        return code

    def _kill(self) -> None:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(self._pid, signal.SIGKILL)

    def ask(self, request: Any, kind: type, timeout_s: float, fds: tuple[int, ...] = ()) -> Any:
        """The reply to a request.

        Raises:
            WorkerFailureError: the worker reports an error, dies, does not answer in time, or
                answers nonsense. In all but the first case it is ended.
        """
        try:
            self._channel.send(request, fds)
            return self.receive(kind, timeout_s)
        except ChannelClosedError as cause:
            raise self.died(str(cause)) from cause

    def receive(self, kind: type, timeout_s: float) -> Any:
        """The next message of the worker; see `ask`."""
        try:
            reply, _ = self._channel.receive(Reply, timeout_s)
        except ChannelTimeoutError as cause:
            self.close()
            raise WorkerFailureError(
                "timeout", "Timeout", f"no answer within {timeout_s:g} s"
            ) from (cause)
        except ChannelClosedError as cause:
            raise self.died(str(cause)) from cause
        if isinstance(reply, Failed):
            raise WorkerFailureError(reply.status, reply.error, reply.text)
        if not isinstance(reply, kind):
            self.close()
            raise WorkerFailureError(
                "crash", "Protocol", f"the worker answered {type(reply).__name__}"
            )
        return reply

    def alive(self) -> bool:
        """Whether the process still runs (a zombie does not)."""
        try:
            with open(f"/proc/{self._pid}/stat", encoding="ascii", errors="replace") as stream:  # noqa: PTH123
                return stream.read().rpartition(")")[2].split()[0] not in ("Z", "X")
        except OSError:
            return False

    def died(self, why: str) -> WorkerFailureError:
        """The failure that stands for the end of this worker; it is closed."""
        tail = self._tail()
        code = self.close()
        if code < 0:
            name = signal.Signals(-code).name
            what = f"ended by {name}"
        else:
            what = f"exited with code {code}" if why == "end of stream" or code else why
        memory = any(word in tail for word in ("std::bad_alloc", "MemoryError", "out of memory"))
        status: Status = "out_of_memory" if memory else "crash"
        return WorkerFailureError(
            status,
            "ProcessEnded",
            f"the worker {what}" + (f"; it last wrote: {tail}" if tail else ""),
        )

    def _tail(self) -> str:
        size = self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, size - LOG_TAIL_BYTES))
        return self._log.read().decode("utf-8", "replace").strip()
