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
"""Of a thread that watches: `seen`, its effects, and `told`, what it has printed meanwhile."""


@contextmanager
def watched() -> Iterator[Counter[str]]:
    """Count effects of this thread, in words such as "opens a file for writing"."""
    _add_hook()
    _WAYS.watch()
    before, seen, told = _num_written(), Counter[str](), list[tuple[Any, str]]()
    outer = vars(_here).copy()
    _here.seen, _here.told = seen, told
    try:
        yield seen
    finally:
        vars(_here).clear()
        # a driver of cards writes to the system at any call
        if not torch.cuda.is_initialized() and _num_written() > before and not seen:
            seen["writes to a file"] += 1
        vars(_here).update(outer)
        _WAYS.leave()
        for stream, text in told:
            with suppress(Exception):
                stream.write(text)


class _Told:
    """A stream that keeps what watching threads write, to be written later; others' goes on."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Take a text as `io.TextIOBase` does."""
        told = getattr(_here, "told", None)
        if told is None or not isinstance(text, str):
            return self._stream.write(text)
        if sys._getframe(1).f_globals.get("__name__") not in ("warnings", "logging"):
            _here.seen["prints"] += 1
        told.append((self._stream, text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Ways:
    """The ways of log records and prints, which lead by us while any thread watches."""

    def __init__(self) -> None:
        self._lock, self._num_threads = threading.Lock(), 0
        self._factory: Any = None
        self._streams: dict[str, tuple[_Told, Any]] = {}

    def watch(self) -> None:
        """Let them lead by us."""
        with self._lock:
            self._num_threads += 1
            if self._num_threads > 1:
                return
            self._factory = logging.getLogRecordFactory()
            logging.setLogRecordFactory(self._record)
            streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
            self._streams = {name: (_Told(own), own) for name, own in streams.items() if own}
            for name, (ours, _) in self._streams.items():
                setattr(sys, name, ours)

    def leave(self) -> None:
        """Put them back when no thread watches any more, unless the net has set others."""
        with self._lock:
            self._num_threads -= 1
            if self._num_threads:
                return
            if logging.getLogRecordFactory() == self._record:
                logging.setLogRecordFactory(self._factory)
            for name, (ours, own) in self._streams.items():
                if getattr(sys, name) is ours:
                    setattr(sys, name, own)

    def _record(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        seen, name = getattr(_here, "seen", None), str(args[0] if args else kwargs.get("name"))
        if seen is not None and name.partition(".")[0] != "torch":
            seen[f"logs to {name}"] += 1
        return self._factory(*args, **kwargs)


_WAYS = _Ways()


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
