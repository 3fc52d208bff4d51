"""Jobs that may crash, hang or eat all memory, each in a child of a warm parent process.

The parent, `python -m passnet.core.jobs.process PREPARE ARGUMENT`, imports what jobs need. For each
line of JSON on its input it forks a child, and answers with a line when the child has ended.
"""

from __future__ import annotations

import importlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from passnet.core.jobs.children import (
    end_tree,
    end_with_parent,
    python_command,
    python_environment,
)
from passnet.core.records.serialise import decode, encode
from passnet.core.records.untrusted import open_untrusted, read_untrusted
from passnet.errors import InputError, WorkerError

R = TypeVar("R")

LOG_FILE = "log.txt"
RECORD_FILE = "record.json"
ROWS_FILE = "rows.parquet"
POLL_S = 0.01
MAX_REASON_CHARACTERS = 200
MAX_LOG_BYTES = 1 << 20
MAX_RESULT_BYTES = 1 << 30
"""Largest record, and largest file of rows, that a job may leave."""


@dataclass(frozen=True, slots=True)
class JobLimits:
    """The limits of a job."""

    seconds: float = field(default=180.0, metadata={"option": "timeout"})
    """Give up on an item after this many seconds."""

    memory_mib: int = 8192
    """Limit the memory of a process to this many MiB."""


@dataclass(frozen=True, slots=True)
class Job:
    """A call of `function` ("module:name") that leaves `RECORD_FILE`, and perhaps `ROWS_FILE`.

    A parent process calls `prepare` with `argument` before its first job.
    """

    function: str
    payload: str
    limits: JobLimits
    prepare: str
    argument: str = ""


@dataclass(frozen=True, slots=True)
class JobEnd:
    """The end of a job's process: exit status or signal, and resources used."""

    status: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    peak_mib: float


@dataclass(frozen=True)
class JobOutcome(Generic[R]):
    """A job's record, and its rows as a Parquet file or None."""

    record: R
    rows: bytes | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """The end of a job, and the files it left: record, rows and log."""

    job: Job
    end: JobEnd
    record: bytes | None
    rows: bytes | None
    log: str

    @property
    def is_done(self) -> bool:
        """Return whether the job returned."""
        return self.end.status == 0

    @property
    def failure(self) -> str:
        """Return the reason why the job did not return."""
        if self.end.timed_out:
            return f"not done in {self.job.limits.seconds:g} s"
        ending = f"signal {self.end.signal}" if self.end.signal else f"status {self.end.status}"
        return self.log[-MAX_REASON_CHARACTERS:] or f"ended by {ending}"

    def outcome(self, kind: type[R]) -> JobOutcome[R] | None:
        """Return the job's record of type `kind` and its rows; None if it left none."""
        if not self.is_done or self.record is None:
            return None
        return JobOutcome(decode(self.record, kind, RECORD_FILE), self.rows)


class JobRunner:
    """A runner of jobs, one at a time, in children of one warm parent process.

    Jobs have their files in a new folder each in `folder`, by default that of temporary files.
    """

    def __init__(self, folder: str | None = None) -> None:
        self._folder = folder
        self._parent: subprocess.Popen[bytes] | None = None
        self._prepared = ("", "")

    def __enter__(self) -> JobRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """Return the parent process, if one was started."""
        return None if self._parent is None else self._parent.pid

    def close(self) -> None:
        """End the parent process; any thread may call it."""
        parent, self._parent = self._parent, None
        if parent is not None:
            end_tree(parent)
            for stream in (parent.stdin, parent.stdout):
                if stream is not None:
                    with suppress(OSError):  # an order that it has not read
                        stream.close()

    def run(self, job: Job) -> JobResult:
        """Run one job; raise WorkerError if our machinery fails twice or the disk is full."""
        with tempfile.TemporaryDirectory(prefix="passnet-job-", dir=self._folder) as name:
            end = self._ask(job, name) or self._ask(job, name)
            if end is None:
                raise WorkerError(f"the parent of {job.prepare} ends before its job has begun")
            folder = Path(name)
            if end.status == os.EX_IOERR:
                raise WorkerError(
                    f"{folder.parent}: a job cannot write its results there; make room, or set "
                    "TMPDIR to another folder"
                )
            log = _log_end(folder / LOG_FILE)
            try:
                record, rows = (_content(folder / file) for file in (RECORD_FILE, ROWS_FILE))
            except InputError as cause:  # it left something else than files
                record, rows, log = None, None, str(cause).replace(f"{folder}/", "")
            return JobResult(job, end, record, rows, log)

    def start(self, prepare: str, argument: str = "") -> None:
        """Let the parent prepare for jobs already."""
        self._ready((prepare, argument))

    def _ask(self, job: Job, folder: str) -> JobEnd | None:
        """Send a job to the parent; return None if the parent ends first."""
        parent = self._ready((job.prepare, job.argument))
        assert parent.stdin is not None and parent.stdout is not None, "both are pipes"
        try:
            parent.stdin.write(encode((job, folder)) + b"\n")
            parent.stdin.flush()
            line = parent.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return None
        return decode(line, JobEnd)

    def _ready(self, preparation: tuple[str, str]) -> subprocess.Popen[bytes]:
        if self._parent is not None and (
            preparation != self._prepared or self._parent.poll() is not None
        ):
            self.close()
        if self._parent is None:
            self._parent = subprocess.Popen(
                python_command("-m", "passnet.core.jobs.process", *preparation),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={
                    **python_environment(),
                    "OMP_NUM_THREADS": "1",
                    "TOKENIZERS_PARALLELISM": "false",
                },
            )
            self._prepared = preparation
        return self._parent


def _content(path: Path) -> bytes | None:
    return read_untrusted(path, MAX_RESULT_BYTES) if path.exists() else None


def _log_end(path: Path) -> str:
    """Return the end of a log; empty for a log that the job has removed or replaced."""
    with suppress(InputError), open_untrusted(path, sys.maxsize) as stream:
        stream.seek(max(0, stream.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
        return stream.read(MAX_LOG_BYTES).decode(errors="replace").strip()
    return ""


def main() -> None:
    """Serve jobs until the input ends, even in mid-preparation."""
    end_with_parent()
    hangup = select.poll()
    hangup.register(0, 0)
    if hangup.poll(0):  # it ended before the line above
        return
    orders, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print is no answer
    _function(sys.argv[1])(sys.argv[2])
    while line := orders.readline():
        job, folder = decode(line, tuple[Job, str])
        end = _fork(job, Path(folder), orders.fileno(), answers.fileno())
        if end is None:
            return
        answers.write(encode(end) + b"\n")


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _fork(job: Job, folder: Path, orders: int, answers: int) -> JobEnd | None:
    """Run a job in a child; return None if the caller is gone meanwhile."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            end_with_parent()
            os.setsid()
            for fd in (orders, answers):
                os.close(fd)
            _work(job, folder)
            status = 0
        except OSError as cause:
            if str(cause.filename).startswith(str(folder)):
                status = os.EX_IOERR
            traceback.print_exc()
        except BaseException:  # noqa: BLE001 (the child's top: what it says is in its log)
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    is_ordered, ended = _wait(pid, orders, job.limits.seconds)
    if ended is None:
        _kill(pid)
    _, status, usage = ended or os.wait4(pid, 0)
    _kill(pid)  # what it left behind
    if is_ordered:  # the next job comes after the answer: this is the end of the input
        return None
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    wall_s = time.monotonic() - start
    return JobEnd(code, by_signal, ended is None, wall_s, usage.ru_maxrss / 1024)


def _wait(pid: int, orders: int, seconds: float) -> tuple[bool, Any]:
    """Wait for an order, a child's end or a time; return whether an order came, and its `wait4`."""
    if hasattr(os, "pidfd_open"):
        handle = os.pidfd_open(pid)
        ready, _, _ = select.select([handle, orders], [], [], seconds)
        os.close(handle)
        return orders in ready, os.wait4(pid, 0) if handle in ready else None
    end = time.monotonic() + seconds
    while time.monotonic() < end:  # macOS
        ended = os.wait4(pid, os.WNOHANG)
        ready, _, _ = select.select([orders], [], [], 0.0 if ended[0] else POLL_S)
        if ready or ended[0]:
            return bool(ready), ended if ended[0] else None
    return False, None


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _work(job: Job, folder: Path) -> None:
    import resource  # not on Windows, where no job runs

    log = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    memory = job.limits.memory_mib * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _function(job.function)(job.payload, folder)
    sys.stdout.flush()
    sys.stderr.flush()


if __name__ == "__main__":
    main()
