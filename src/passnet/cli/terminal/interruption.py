"""Ctrl-C and SIGTERM: one sentence on the results kept and the next step; no process stays."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from passnet.cli.terminal.exits import SIGNALLED
from passnet.core.jobs.children import adopt_orphans, end_descendants
from passnet.core.jobs.run_folder import used_runs
from passnet.core.terminal.counts import counted

GRACE_S = 1.0
"""How long a command may take to put things away before it is ended as it is."""

WAY_FILES = "form-*/*/engine.json"
"""What `passnet optimize` leaves of each backend."""

SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
"""For a terminal on which a progress bar may have hidden it."""


class Interruption:
    """Ends the command that runs when a signal asks for that.

    The first signal raises KeyboardInterrupt, so that files and folders are put away; when that
    takes longer than `GRACE_S`, or another signal comes, the process ends without.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._command: click.Context | None = None
        self._lock = threading.RLock()  # the second signal may interrupt the first
        self._has_spoken = False

    def __call__(self, number: int, _: FrameType | None) -> None:
        """The handler of a signal."""
        if self.signal is not None:
            self.end()
        self.signal = number
        self._command = click.get_current_context(silent=True)
        timer = threading.Timer(GRACE_S, self.end)
        timer.daemon = True
        timer.start()
        raise KeyboardInterrupt

    def _speak(self) -> None:
        """End all other processes, and print the outlook once."""
        with self._lock:
            if self._has_spoken:
                return
            self._has_spoken = True
            end_descendants()
            reason = "interrupted" if self.signal == signal.SIGINT else "ended by SIGTERM"
            clear = SHOW_CURSOR if sys.stderr.isatty() and not os.environ.get("NO_COLOR") else ""
            text = f"{clear}passnet: {reason}; {_outlook(self._command)}\n"
            with suppress(OSError):
                os.write(sys.stderr.fileno(), text.encode())

    def end(self) -> NoReturn:
        """Print the outlook, and end this process and all its children."""
        assert self.signal is not None, "no signal came"
        self._speak()
        end_descendants()  # what a thread has started meanwhile
        os._exit(SIGNALLED + self.signal)  # Python's own end takes seconds with torch loaded


@contextmanager
def interruptible() -> Iterator[Interruption]:
    """For the length of the block Ctrl-C and SIGTERM end what runs in it, by a KeyboardInterrupt;
    whoever catches that lets the interruption end the process.

    Only the main thread hears signals; in another one nothing changes.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    adopt_orphans()
    before = {each: signal.signal(each, interruption) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interruption
    finally:
        if interruption.signal is None:
            for number, handler in before.items():
                signal.signal(number, handler)
            adopt_orphans(False)


def _outlook(command: click.Context | None) -> str:
    """Return a sentence on the results of a command and its next step."""
    words = shlex.join(["passnet", *sys.argv[1:]])
    values = {} if command is None else command.params
    can_resume = command and "resume" in {each.name for each in command.command.params}
    goes_on = command is not None and getattr(command.command, "goes_on", False)
    if not (can_resume or goes_on) or values.get("out", values.get("work")) is None:
        return f"what it had begun is not complete; to begin again: {words}"
    kept = []
    for folder, texts in _held(values.get("out")).items():
        verb = "is" if len(texts) == 1 and texts[0].startswith("1 ") else "are"
        kept.append(f"{' and '.join(texts)} {verb} kept in {folder}")
    none = (
        f"all that is finished is kept in {values['out']}" if goes_on else "nothing is finished yet"
    )
    resume = "" if goes_on or "--resume" in sys.argv else " --resume"
    return f"{', '.join(kept) or none}; to go on: {words}{resume}"


def _held(out: Path | None) -> dict[Path, list[str]]:
    """Return what the folders hold where this process has begun a run, and a command's `out`."""
    held: dict[Path, list[str]] = {}
    for run in used_runs():
        if text := run.held():
            held.setdefault(run.out, []).append(text)
    if out is not None and (num_ways := sum(1 for _ in out.glob(WAY_FILES))):
        held.setdefault(out, []).append(counted(num_ways, "tried backend"))
    return held
