"""The command line on a machine that lacks something: `python -m tests.cli.lacking WHAT WORDS...`.

WHAT is torch, macos or windows. Modules cannot be found then, and `os` and `signal` have only what
Python has there; libraries are imported before, as their builds for Linux need Linux.
"""

import importlib.abc
import os
import signal
import sys
from types import ModuleType

MODULES = {
    "torch": ("torch",),
    "macos": (),
    "windows": ("fcntl", "grp", "pty", "pwd", "resource", "termios"),
}

_LINUX = (
    "memfd_create pidfd_open pidfd_send_signal sched_getaffinity sched_setaffinity sigtimedwait"
)
_POSIX = """
    ITIMER_REAL O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP
    SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGSYS SIGUSR1 SIGUSR2 SIGXCPU SIGXFSZ SIG_BLOCK SIG_SETMASK
    SIG_UNBLOCK WNOHANG alarm chown fork getegid geteuid getgid getloadavg getpgid getuid killpg
    lchown mkfifo pause pthread_kill pthread_sigmask setitimer setpgid setsid siginterrupt
    sigpending sigwait sigwaitinfo statvfs sysconf wait4 waitid
"""
NAMES = {"torch": "", "macos": _LINUX, "windows": f"{_LINUX} {_POSIX}"}


class _Absent(importlib.abc.MetaPathFinder):
    """Finds some modules nowhere."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names

    def find_spec(self, name: str, path: object = None, target: ModuleType | None = None) -> None:
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def take_away(what: str) -> None:
    """Take modules and names from this process."""
    import multiprocessing
    import subprocess
    import tempfile

    import click  # noqa: F401
    import duckdb  # noqa: F401
    import matplotlib.pyplot
    import numpy as np  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    assert all((matplotlib, multiprocessing, subprocess, tempfile))
    sys.meta_path.insert(0, _Absent(MODULES[what]))
    for name in MODULES[what]:
        sys.modules.pop(name, None)
    for module in (os, signal):
        for name in NAMES[what].split():
            if hasattr(module, name):
                delattr(module, name)


if __name__ == "__main__":
    take_away(sys.argv.pop(1))
    from passnet.cli import main

    main(prog_name="passnet")
