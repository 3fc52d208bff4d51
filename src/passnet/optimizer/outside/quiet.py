"""Silence for one thread: other threads go on to warn and log.

What torch logs from C++, where no call of Python is told, is silenced for the process.
"""

import ctypes
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import torch

_FATAL = 3
"""The level of torch's own log at which only what ends the process is told."""

_lock = threading.Lock()
_former: list[int] = []
"""The former levels, one for each `quiet` that is on."""


class _OfThread:
    """A filter of warnings and log records: it fits those of one thread, while it is on."""

    def __init__(self) -> None:
        self._thread, self.is_on = threading.get_ident(), True

    def match(self, _: str) -> bool:
        """Return whether a warning is of the thread, as a compiled expression does for a text."""
        return self.is_on and threading.get_ident() == self._thread

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a handler takes a record."""
        return not self.match(record.name)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings and logs of this thread, and torch's log from C++."""
    mine, root, silent = _OfThread(), logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)  # without one, a first message sets the whole process up to print all
    known: Any = logging._handlerList  # type: ignore[attr-defined]
    handlers = [handler for each in known if (handler := each()) is not None]
    for handler in handlers:
        handler.addFilter(mine)
    own: Any = ("ignore", mine, Warning, None, 0)
    warnings.filters.insert(0, own)  # type: ignore[union-attr]
    warnings._filters_mutated()  # type: ignore[attr-defined]
    level = _torch_level()
    with _lock:
        _former.append(level.value)
        level.value = _FATAL
    try:
        yield
    finally:
        with _lock:
            former = _former.pop()
            level.value = _FATAL if _former else former
        mine.is_on = False  # a copy of the list of filters, made meanwhile, may come back
        warnings.filters[:] = [each for each in warnings.filters if each is not own]  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        for handler in handlers:
            handler.removeFilter(mine)
        root.removeHandler(silent)


@cache
def _torch_level() -> ctypes.c_int:
    """Return the least level of messages that torch writes to stderr, as its library holds it."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        return ctypes.c_int.in_dll(library, "FLAGS_caffe2_log_level")
    except (OSError, ValueError):  # another system, or another torch
        return ctypes.c_int()
