"""A limit on the time of a call in this thread that cannot run in a process of its own."""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class OvertimeError(BaseException):
    """A call took too long; no `except Exception` of the called code catches it."""


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Raise OvertimeError in this thread, between two steps of Python, after so many seconds.

    Code of C++ ends first. Loops of Python that never end are what this is for.
    """
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    is_done = is_raised = False

    def stop() -> None:
        nonlocal is_raised
        with lock:
            if not is_done:
                is_raised = True
                _raise_in(thread, ctypes.py_object(OvertimeError))

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        with lock:
            is_done = True
            if is_raised:
                _raise_in(thread, None)  # what was not yet raised
        timer.cancel()
        timer.join()


def _raise_in(
    thread: ctypes.c_ulong, error: "ctypes.py_object[type[OvertimeError]] | None"
) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
