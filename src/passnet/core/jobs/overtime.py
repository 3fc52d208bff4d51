"""A limit on the time of a call in this thread that cannot run in a process of its own."""

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class OvertimeError(BaseException):
    """A call took too long; no `except Exception` of the called code catches it."""


@contextmanager
def limited_to(seconds: float) -> Iterator[None]:
    """Raise OvertimeError in this thread, between two steps of Python, after so many seconds.

    Code of C++ ends first. Loops of Python that never end are what this is for.
    """
    thread, lock = ctypes.c_ulong(threading.get_ident()), threading.Lock()
    is_done = is_raised = has_arrived = False

    def stop() -> None:
        nonlocal is_raised
        with lock:
            if not is_done:
                is_raised = True
                error = ctypes.py_object(OvertimeError)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        yield
    except OvertimeError:
        has_arrived = True
        raise
    finally:
        with lock:
            is_done = True
        timer.cancel()
        timer.join()
        if is_raised and not has_arrived:  # taken back, it would leave CPython 3.11 looking for it
            with suppress(OvertimeError):
                while True:
                    time.sleep(0.001)
