"""A process that has a library imported, and forks a child for every net.

Run as `python -m passnet.extract.worker ENTRY`, with an entry of the library. It reads requests
from its standard input, a JSON line each, and answers each on its standard output when the child
has ended. The child writes `graphs.parquet` and `record.json` to the folder of its request; that
its process may crash, hang, or eat all memory is why it is a process.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from passnet.extract.record import CaptureSettings
from passnet.records import decode, encode, write_json

RECORD_FILE = "record.json"
ROWS_FILE = "graphs.parquet"
LOG_FILE = "log.txt"


@dataclass(frozen=True, slots=True)
class Request:
    """Capture `entry` and leave what comes of it in `folder`."""

    entry: str
    folder: str
    settings: CaptureSettings


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: by an exit status or a signal, and what it used."""

    status: int | None
    signal: int | None
    timed_out: bool
    wall_s: float
    peak_mib: float


def main() -> None:
    """Serve requests until the input ends."""
    requests, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb", 0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # what libraries print is no answer
    from passnet.extract.job import ready

    ready(sys.argv[1])
    while line := requests.readline():
        ended = _fork(decode(line, Request), (requests.fileno(), answers.fileno()))
        answers.write(encode(ended) + b"\n")


def _fork(request: Request, private: tuple[int, ...]) -> Ended:
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.setsid()
            for fd in private:
                os.close(fd)
            status = _child(request)
        except BaseException:  # noqa: BLE001 (the child's top: what it says is in its log)
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    handle = os.pidfd_open(pid)
    in_time, _, _ = select.select([handle], [], [], request.settings.limits.seconds)
    os.close(handle)
    if not in_time:
        _kill(pid)
    _, status, usage = os.wait4(pid, 0)
    _kill(pid)  # what it left behind
    by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    wall_s = time.monotonic() - start
    return Ended(code, by_signal, not in_time, wall_s, usage.ru_maxrss / 1024)


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _child(request: Request) -> int:
    from passnet.extract.job import capture_entry
    from passnet.extract.store import GRAPHS

    folder = Path(request.folder)
    log = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    memory = request.settings.limits.memory_mib * 2**20
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    result = capture_entry(request.entry, request.settings)
    if result.rows:
        GRAPHS.write(folder / ROWS_FILE, result.rows)
    write_json(folder / RECORD_FILE, result.record)
    return 0


if __name__ == "__main__":
    main()
