"""The judge's handle on a forked worker: its messages, its memory and its end, from outside."""

from __future__ import annotations

import fcntl
import math
import os
import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from passnet.errors import WorkerError
from passnet.judge.processes.census import FIRST_PID, SandboxUse
from passnet.judge.processes.device_lock import give_way
from passnet.judge.processes.standstill import GoneError, Standstill, StopPlace
from passnet.judge.processes.starts import Starts
from passnet.judge.protocol import channel, messages
from passnet.judge.score.status import Status

LOG_TAIL_BYTES = 600
MAX_LOG_BYTES = 2**20
"""Most bytes that a worker and all it started can write to their log; more is refused (EPERM)."""
MEMORY_PAUSE_S = 0.25
"""Time between two questions how much memory a sandbox uses, while an answer is awaited."""
_LONG_WORK = (messages.Loaded, messages.Ran, messages.MatchesChecked)
"""Answers for which a worker may take long; meanwhile it gives way to those who measure."""
NUM_OPEN_ATTEMPTS = 200
BIRTH_PAUSE_S = 0.002
"""Pause between two questions whether a new worker has stopped, after some milliseconds."""
_ALWAYS_COUNTS = 0.2
"""The share of wall time that counts even if a worker waited: time-outs take five times their
limit."""
_READ_BYTES = 2**30
"""Most bytes of a worker's memory in one read; Linux reads no more than 2 GiB."""


@dataclass
class WorkerFailureError(Exception):
    """A failed request to a worker: status, text, and the signal that killed it, if any."""

    status: Status
    error: str
    text: str
    signal_number: int | None = None

    def __post_init__(self) -> None:
        self.error = messages.plain_text(self.error, messages.MAX_NAME)
        self.text = messages.plain_text(self.text, messages.MAX_SENTENCE)

    def __str__(self) -> str:
        return f"{self.error}: {self.text}" if self.text else self.error


class WorkerMaker(Protocol):
    """The process that forked a worker, and can end it."""

    @property
    def is_confined(self) -> bool:
        """Return whether workers run in namespaces of their own."""

    @property
    def is_shared(self) -> bool:
        """Return whether other workers may run beside one."""

    def end(self, pid: int, is_awaited: bool = True) -> messages.WorkerEnded:
        """Kill a worker and all it started; return its end, if awaited."""

    def end_others(self, pid: int) -> int:
        """Kill all processes of a worker's sandbox but itself; return their number."""


@dataclass(eq=False)
class Worker:
    """One forked worker."""

    _pid: int
    _host_pid: int
    _memory: int
    _channel: channel.Channel
    _log: int
    _maker: WorkerMaker
    _starts: Starts | None = None
    _use: SandboxUse | None = None
    _open: bool = True
    _failure: WorkerFailureError | None = None
    num_left: int = 0
    num_ended: int = 0
    """Processes beside it that were ended before it was timed."""
    birth: StopPlace | None = None
    """The place of its first stop, before any other code came to it."""
    _allowed_s: float = math.inf
    _spent_s: float = 0.0
    _next_memory_check: float = 0.0

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, is_awaited: bool = True) -> int:
        """End the worker and all it started; return its exit code, or a killed worker's."""
        if not self._open:
            return 0
        self._open = False
        self._channel.close()
        os.close(self._memory)
        ended = self._maker.end(self._pid, is_awaited)
        self.num_left = ended.num_left
        if self._starts is not None:
            self._starts.close()
        os.close(self._log)
        return ended.code

    def ask(self, request: Any, kind: type, timeout_s: float, fds: tuple[int, ...] = ()) -> Any:
        """Return the reply to a request.

        Raises WorkerFailureError if the worker reports an error, dies, does not answer in time, or
        answers nonsense. But for the first case it is ended, and later requests fail in the same
        way.
        """
        if not self._open:
            raise self._failure or WorkerFailureError("crash", "ProcessEnded", "it was ended")
        try:
            self._channel.send(request, fds)
            return self.receive(kind, timeout_s)
        except channel.ChannelClosedError as cause:
            raise self.died(str(cause)) from cause

    def receive(self, kind: type, timeout_s: float) -> Any:
        """Return the next message of the worker; see `ask`."""
        elapsed_s = self.stopwatch()
        limit_s = min(timeout_s, self.left_s)
        paused_s = 0.0
        while (left_s := limit_s + paused_s - elapsed_s()) > 0:
            if self._channel.readable(min(left_s, MEMORY_PAUSE_S)):
                break
            self.check_memory()
            if kind in _LONG_WORK:
                paused_s += give_way(self._host_pid)
        try:
            reply, fds = self._channel.receive(messages.Reply, max(left_s, 0.0))
        except channel.ChannelTimeoutError as cause:
            self.spend(elapsed_s() - paused_s)
            text = f"no answer within {timeout_s:g} s"
            raise self.end_for("timeout", "Timeout", text) from cause
        except channel.NoMessageError as cause:
            text = f"the answer of the worker is {cause}"
            raise self.end_for("crash", "Protocol", text) from cause
        except channel.ChannelClosedError as cause:
            raise self.died(str(cause)) from cause
        for fd in fds:  # no request asks for one
            os.close(fd)
        self.spend(elapsed_s() - paused_s)
        if isinstance(reply, messages.Failed):
            raise WorkerFailureError(reply.status, reply.error, reply.text)
        if not isinstance(reply, kind):
            text = f"the worker answered {type(reply).__name__}"
            raise self.end_for("crash", "Protocol", text)
        return reply

    def stopwatch(self) -> Callable[[], float]:
        """Return a clock of the seconds since now that count against the worker.

        It leaves out time that its main thread waited for a processor while nothing else of its
        sandbox ran, but for a part.
        """
        start, waited_s, ran_s = time.monotonic(), self._waited_s(), self._ran_s()

        def elapsed_s() -> float:
            wall_s = time.monotonic() - start
            return counted_s(wall_s, self._waited_s() - waited_s, self._ran_s() - ran_s)

        return elapsed_s

    def _waited_s(self) -> float:
        try:
            words = Path(f"/proc/{self._host_pid}/schedstat").read_bytes().split()
        except OSError:  # it has ended, or the kernel keeps no such account
            return 0.0
        return int(words[1]) / 1e9 if len(words) > 1 else 0.0

    def _ran_s(self) -> float:
        """Return the CPU time of all in its sandbox; 0 if it shares one."""
        return self._use.cpu_s() if self._use is not None else 0.0

    def check_memory(self) -> None:
        """End the worker with a WorkerFailureError if its sandbox uses too much memory.

        Looks once in MEMORY_PAUSE_S at most, however often it is asked.
        """
        if self._use is None or (now := time.monotonic()) < self._next_memory_check:
            return
        self._next_memory_check = now + MEMORY_PAUSE_S
        if excess := self._use.excess():
            raise self.end_for("out_of_memory", "Memory", excess)

    def stay_alone(self) -> None:
        """Let nothing but this worker run in its sandbox from now on: end all else, refuse more.

        A sandbox that it shares is left as it is.
        """
        if self._use is None:
            return
        if self._starts is not None:
            self._starts.refuse_processes()
        self.num_ended = self._maker.end_others(self._pid)

    @property
    def num_refused(self) -> int:
        """Return how often a start was refused."""
        return self._starts.num_refused if self._starts is not None else 0

    def allow(self, seconds: float) -> None:
        """Limit the judge's further waiting for this worker to so many seconds in all."""
        self._allowed_s, self._spent_s = seconds, 0.0

    @property
    def left_s(self) -> float:
        """Return the remaining seconds of `allow`; infinite before it."""
        return self._allowed_s - self._spent_s

    def spend(self, seconds: float) -> None:
        """Count time that the judge waited, or raise WorkerFailureError if it is used up."""
        self._spent_s += seconds
        if self.left_s <= 0:
            text = f"all calls together took more than {self._allowed_s:g} s"
            raise self.end_for("timeout", "Timeout", text)

    def read(self, address: int, num_bytes: int) -> bytes:
        """Read the worker's memory; without such memory it is ended with a WorkerFailureError."""
        try:
            parts = [
                os.pread(self._memory, min(_READ_BYTES, num_bytes - start), address + start)
                for start in range(0, num_bytes, _READ_BYTES)
            ]
            data = parts[0] if len(parts) == 1 else b"".join(parts)
        except (OSError, OverflowError, ValueError):
            data = b""
        if len(data) != num_bytes:
            text = "an output does not lie in the memory of the worker"
            raise self.end_for("crash", "Protocol", text)
        return data

    def write(self, address: int, data: memoryview) -> None:
        """Write into the worker's memory, where it has any.

        Memory that can be read and not written, as a shared file mapped twice, would keep values
        from call to call: the worker is ended with a WorkerFailureError.
        """
        with suppress(OSError, OverflowError):
            if os.pwrite(self._memory, data, address) == len(data):
                return
        with suppress(OSError, OverflowError):
            if len(os.pread(self._memory, len(data), address)) == len(data):
                text = "an output lies in memory that cannot be written"
                raise self.end_for("crash", "Protocol", text)

    def mapped_at(self, name: str) -> int | None:
        """Return the address at which the worker has mapped a shared memory; None if it has not."""
        with suppress(OSError), Path(f"/proc/{self._host_pid}/maps").open("rb") as lines:
            for line in lines:  # one by one: a worker can have 65,530
                if f"/memfd:{name} ".encode() in line:
                    return int(line.split(b"-", 1)[0], 16)
        return None

    def num_threads(self) -> int:
        """Return the number of the worker's threads."""
        try:
            return len(list(Path(f"/proc/{self._host_pid}/task").iterdir()))
        except OSError:
            return 0

    def await_birth(self) -> None:
        """Wait for its first stop, note the place, and let it go."""
        with suppress(GoneError), closing(self.standstill()) as still:
            still.await_stop(lambda: None, shortest_pause_s=BIRTH_PAUSE_S)
            self.birth = still.place()
            still.release()

    def standstill(self) -> Standstill:
        """Return its process, as one that stops itself."""
        return Standstill(self._host_pid, self._maker.is_confined)

    def num_strangers(self) -> int:
        """Return the number of other processes in its sandbox; 0 if it shares one."""
        return len(set(self._use.pids()) - {FIRST_PID, self._pid}) if self._use else 0

    def keep_to(self, processors: set[int]) -> None:
        """Bind its threads to some processors."""
        with suppress(OSError):
            for task in Path(f"/proc/{self._host_pid}/task").iterdir():
                os.sched_setaffinity(int(task.name), processors)

    def has_spoken(self) -> bool:
        """Return whether a message of the worker, or its end, can be received."""
        return self._channel.readable()

    def end_for(self, status: Status, error: str, text: str) -> WorkerFailureError:
        """End the worker; return the failure that is the reason."""
        self.close()
        self._failure = WorkerFailureError(status, error, text)
        return self._failure

    def died(self, why: str) -> WorkerFailureError:
        """Close this worker, which has ended; return the failure that tells how."""
        size = min(os.lseek(self._log, 0, os.SEEK_CUR), MAX_LOG_BYTES)  # it writes by the same one
        tail = os.pread(self._log, LOG_TAIL_BYTES, max(0, size - LOG_TAIL_BYTES))
        tail = tail.decode("utf-8", "replace").strip("\0 \n")
        code = self.close()
        if code < 0:
            # Most real-time signals have no name.
            names = {number.value: number.name for number in signal.Signals}
            ending = f"ended by {names.get(-code, f'signal {-code}')}"
        else:
            ending = f"exited with code {code}" if why == "end of stream" or code else why
        memory = any(word in tail for word in ("std::bad_alloc", "MemoryError", "out of memory"))
        status: Status = "out_of_memory" if memory else "crash"
        text = f"the worker {ending}" + (f"; it last wrote: {tail}" if tail else "")
        number = -code if code < 0 else None
        self._failure = WorkerFailureError(status, "ProcessEnded", text, number)
        return self._failure


def counted_s(wall_s: float, waited_s: float, ran_s: float = 0.0) -> float:
    """Return the part of wall time that counts against a worker that waited for a processor.

    Time that its sandbox ran, by its own threads and processes, counts in any case.
    """
    return min(wall_s, max(wall_s - waited_s, ran_s, wall_s * _ALWAYS_COUNTS))


def bounded_log() -> int:
    """Return a descriptor of memory for a worker's log, which cannot grow; close it."""
    log = os.memfd_create("passnet-log", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(log, MAX_LOG_BYTES)
    fcntl.fcntl(log, fcntl.F_ADD_SEALS, fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return log


def open_memory(pid: int) -> int:
    """Open the memory of a process for reading and writing from outside it."""
    for _ in range(NUM_OPEN_ATTEMPTS):
        try:
            return os.open(f"/proc/{pid}/mem", os.O_RDWR | os.O_CLOEXEC)
        except PermissionError:  # it is not yet ready to be read
            time.sleep(0.005)
        except OSError as cause:
            raise WorkerError(f"the memory of a worker cannot be read: {cause}") from cause
    raise WorkerError("the memory of a worker may not be read; is ptrace switched off here?")
