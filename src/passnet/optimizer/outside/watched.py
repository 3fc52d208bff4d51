"""Effects of a call that nothing can put back: files, processes, connections, logs and prints.

Only those of this thread count: an audit hook sees what Python opens and starts, Linux counts the
bytes that a thread writes, also in C++, and log records and prints pass by us. Warnings are no
effects: they are for developers, and Python shows each once.
"""

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import torch

_EVENTS = {
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.posix_spawn"), "starts a process"),
    **dict.fromkeys(("os.exec", "os.fork", "os.forkpty"), "starts a process"),
    **dict.fromkeys(("socket.connect", "socket.bind"), "opens a connection"),
    **dict.fromkeys(("socket.sendto", "socket.sendmsg"), "sends a message"),
    **dict.fromkeys(("os.putenv", "os.unsetenv"), "sets a variable of the environment"),
    **dict.fromkeys(("os.remove", "os.rmdir", "shutil.rmtree"), "removes a file"),
    **dict.fromkeys(("os.rename", "os.link", "os.symlink"), "renames a file"),
    **dict.fromkeys(("os.mkdir", "os.truncate", "os.utime", "os.chmod"), "changes a file"),
    "sqlite3.connect": "opens a database",
    "os.kill": "sends a signal",
}
"""Audit events of Python that are effects, in words."""

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_COUNTS = Path("/proc/thread-self/io")
"""What the thread has read and written; only Linux has it."""

_here = threading.local()


@contextmanager
def watched() -> Iterator[Counter[str]]:
    """Count effects of this thread, in words such as "opens a file for writing"."""
    _add_hook()
    seen, before, told = Counter[str](), _num_written(), list[tuple[Any, str]]()
    factory, streams = logging.getLogRecordFactory(), [sys.stdout, sys.stderr]
    own, outer = threading.get_ident(), getattr(_here, "seen", None)

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        name = str(args[0] if args else kwargs.get("name"))
        if threading.get_ident() == own and name.partition(".")[0] != "torch":
            seen[f"logs to {name}"] += 1
        return factory(*args, **kwargs)

    logging.setLogRecordFactory(record)
    ours = [stream and _Told(stream, own, seen, told) for stream in streams]
    sys.stdout, sys.stderr = ours  # type: ignore[assignment]
    _here.seen = seen
    try:
        yield seen
    finally:
        _here.seen = outer
        if logging.getLogRecordFactory() is record:
            logging.setLogRecordFactory(factory)
        for name, stream, our in zip(("stdout", "stderr"), streams, ours, strict=True):
            if getattr(sys, name) is our:
                setattr(sys, name, stream)
        # a driver of cards writes to the system at any call
        if not torch.cuda.is_initialized() and _num_written() > before and not seen:
            seen["writes to a file"] += 1
        for stream, text in told:
            with suppress(Exception):
                stream.write(text)


class _Told:
    """A stream that notes what one thread writes, to be written later; other threads' goes on."""

    def __init__(
        self, stream: Any, thread: int, seen: Counter[str], told: list[tuple[Any, str]]
    ) -> None:
        self._stream, self._thread, self._seen, self._told = stream, thread, seen, told

    def write(self, text: str) -> int:
        """Take a text as `io.TextIOBase` does."""
        if threading.get_ident() != self._thread or not isinstance(text, str):
            return self._stream.write(text)
        if sys._getframe(1).f_globals.get("__name__") not in ("warnings", "logging"):
            self._seen["prints"] += 1
        self._told.append((self._stream, text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _num_written() -> int:
    """Return how many bytes this thread has written so far, 0 where that is not known."""
    try:
        lines = _COUNTS.read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("wchar")).split()[1])
    except (OSError, StopIteration, ValueError):
        return 0


@cache
def _add_hook() -> None:
    """Add the hook, which stays for good, as Python removes none; outside of `watched` it rests."""
    sys.addaudithook(_note)


def _note(event: str, args: tuple[Any, ...]) -> None:
    seen = getattr(_here, "seen", None)
    if seen is None:
        return
    if event == "open":
        is_written = isinstance(args[2], int) and args[2] & _WRITES and args[0] != os.devnull
        says = "opens a file for writing" if is_written else None
    else:
        says = _EVENTS.get(event)
    if says is not None and not _is_of_torch():
        seen[says] += 1


def _is_of_torch() -> bool:
    """Return whether torch itself does what was noted, as its compilers do in eager calls; what it
    saves is seen by its bytes.
    """
    frame = sys._getframe(2)
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package not in sys.stdlib_module_names:
            return package == "torch"
        frame = frame.f_back
    return False
