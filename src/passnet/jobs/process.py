"""Work that may crash, hang or eat all memory: each task in a child of a warm parent process.

The parent, `python -m passnet.jobs.process PREPARE ARGUMENT`, imports what tasks need. It reads
tasks from its standard input, a JSON line each, forks a child for each, and answers on its standard
output, one line a task, when the child has ended. A task leaves what comes of it in a folder.
"""

from __future__ import annotations

import importlib
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from passnet.errors import WorkerError
from passnet.jobs.lifetime import end_with_parent
from passnet.jobs.run_folder import JobOutcome
from passnet.records.serialise import decode, encode, read_json

R = TypeVar("R")

LOG_FILE = "log.txt"
RECORD_FILE = "record.json"
ROWS_FILE = "rows.parquet"
MAX_SAID_CHARACTERS = 200
MAX_LOG_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What a task may use: wall time in seconds, memory in MiB."""

    seconds: float = 180.0
    memory_mib: int = 8192


@dataclass(frozen=True, slots=True)
class Job:
    """A call of `function` ("module:name") with `payload` and the path of `folder`."""

    function: str
    payload: str
    folder: str
    limits: JobLimits


@dataclass(frozen=True, slots=True)
class JobEnd:
    """How a task's process ended: by an exit status or a signal, and what it used."""

    status: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    peak_mib: float


class JobRunner:
    """Runs tasks in processes of their own, one at a time.

    Their parent stays until a task needs another one: one that was prepared in another way.
    """

    def __init__(self) -> None:
        self._parent: subprocess.Popen[bytes] | None = None
        self._prepared = ("", "")

    def __enter__(self) -> JobRunner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the parent."""
        if self._parent is not None:
            self._parent.kill()
            self._parent.wait()
            for stream in (self._parent.stdin, self._parent.stdout):
                if stream is not None:
                    stream.close()
            self._parent = None

    def run(self, task: Job, prepare: str, argument: str) -> JobEnd:
        """Run one task.

        Args:
            task: what to do.
            prepare: the function ("module:name") that a parent calls before its first task.
            argument: of that function; a parent that was called with another is not used.

        Raises:
            WorkerError: our own machinery failed, twice.
        """
        ended = self._ask(task, prepare, argument) or self._ask(task, prepare, argument)
        if ended is None:
            raise WorkerError(f"the parent of {prepare} {argument} ends before its task has begun")
        return ended

    def _ask(self, task: Job, prepare: str, argument: str) -> JobEnd | None:
        """Let the parent work on a task; None where the parent ends over it."""
        parent = self._ready(prepare, argument)
        assert parent.stdin is not None and parent.stdout is not None, "both are pipes"
        try:
            parent.stdin.write(encode(task) + b"\n")
            parent.stdin.flush()
            line = parent.stdout.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            self.close()
            return None
        return decode(line, JobEnd)

    def _ready(self, prepare: str, argument: str) -> subprocess.Popen[bytes]:
        wanted = (prepare, argument)
        if self._parent is not None and (
            wanted != self._prepared or self._parent.poll() is not None
        ):
            self.close()
        if self._parent is None:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "passnet.jobs.process", prepare, argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"},
            )
            self._prepared = wanted
        return self._parent


def outcome_of(
    worker: JobRunner, task: tuple[str, str], limits: JobLimits, ready: str, kind: type[R]
) -> JobOutcome[R] | str:
    """What a task leaves in its folder, as `RECORD_FILE` and `ROWS_FILE`; or in words why nothing.

    Args:
        worker: runs it.
        task: its function and payload; see `Job`.
        limits: what it may use.
        ready: the function that a parent calls before its first task, with "".
        kind: of the record.

    Raises:
        WorkerError: our own machinery failed.
    """
    with tempfile.TemporaryDirectory(prefix="passnet-task-") as place:
        ended = worker.run(Job(*task, place, limits), ready, "")
        folder = Path(place)
        if ended.status == 0 and (folder / RECORD_FILE).exists():
            rows = folder / ROWS_FILE
            content = rows.read_bytes() if rows.exists() else None
            return JobOutcome(read_json(folder / RECORD_FILE, kind), content)
        if ended.timed_out:
            return f"not done in {limits.seconds:g} s"
        return log_of(folder)[-MAX_SAID_CHARACTERS:] or f"ended by signal {ended.signal}"


def log_of(folder: Path) -> str:
    """What a task has printed, the last of it."""
    path = folder / LOG_FILE
    if not path.exists():
        return ""
    return path.read_bytes()[-MAX_LOG_BYTES:].decode(errors="replace").strip()


def main() -> None:
    """Serve tasks until the input ends."""
    tasks, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print is no answer
    _function(sys.argv[1])(sys.argv[2])
    while line := tasks.readline():
        ended = _fork(decode(line, Job), tasks.fileno(), answers.fileno())
        if ended is None:
            return
        answers.write(encode(ended) + b"\n")


def _function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _fork(task: Job, tasks: int, answers: int) -> JobEnd | None:
    """Let a child work on a task; None if whoever wants it is gone meanwhile."""
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            end_with_parent()
            os.setsid()
            for fd in (tasks, answers):
                os.close(fd)
            _work(task)
            status = 0
        except BaseException:  # noqa: BLE001 (the child's top: what it says is in its log)
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    handle = os.pidfd_open(pid)
    ready, _, _ = select.select([handle, tasks], [], [], task.limits.seconds)
    os.close(handle)
    if handle not in ready:
        _kill(pid)
    _, status, usage = os.wait4(pid, 0)
    _kill(pid)  # what it left behind
    if tasks in ready:  # the next task comes after the answer: this is the end of the input
        return None
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    wall_s = time.monotonic() - start
    return JobEnd(code, by_signal, not ready, wall_s, usage.ru_maxrss / 1024)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _work(task: Job) -> None:
    folder = Path(task.folder)
    log = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    memory = task.limits.memory_mib * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _function(task.function)(task.payload, folder)
    sys.stdout.flush()
    sys.stderr.flush()


if __name__ == "__main__":
    main()
