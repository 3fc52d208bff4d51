"""A step under its limit: its commands in turn, stopped when the time is up, resumed later.

What a step has done lies in its folder: `step.json`, the output of each command, and the records
that the commands write as they go.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from passnet.core.records.serialise import read_json, write_json

LIMIT_S = 480.0
"""Longest time of a step in one call."""

GRACE_S = 20.0
"""Part of the limit that a command has to end by itself when it is told to."""

STATE_FILE = "step.json"


@dataclass(frozen=True)
class Step:
    """A question to a GPU, and the commands that answer it; each goes on where it was stopped."""

    name: str
    question: str
    commands: Callable[[Path], Sequence[Sequence[str]]]
    """The commands, for a folder of records."""
    result: Callable[[Path], str]
    """What the records say so far, in a line."""
    needs: Callable[[], str]
    """Why it cannot run here; empty where it can."""


@dataclass(frozen=True)
class StepState:
    """What was done of a step: the numbers of finished commands, the time, and how it ended."""

    finished: tuple[int, ...] = ()
    num_calls: int = 0
    seconds: float = 0.0
    ending: str = "not run"

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is left."""
        return self.ending == "complete"


class RunningCommand(Protocol):
    """A command that was started."""

    def wait(self, timeout_s: float) -> int | None:
        """Return its exit code; None if it still runs after so many seconds."""

    def interrupt(self) -> None:
        """Ask it to end."""

    def end(self) -> None:
        """End it and all that it started."""


Start = Callable[[Sequence[str], Path], RunningCommand]
"""Start a command whose output goes to a file."""


def read_state(folder: Path) -> StepState:
    """Return the state of a step."""
    path = folder / STATE_FILE
    return read_json(path, StepState) if path.is_file() else StepState()


def run_step(
    step: Step,
    folder: Path,
    start: Start,
    clock: Callable[[], float] = time.monotonic,
    limit_s: float = LIMIT_S,
) -> StepState:
    """Run what is left of a step, for at most `limit_s` seconds, and return its state."""
    folder.mkdir(parents=True, exist_ok=True)
    state, begin = read_state(folder), clock()
    before_s, failed = state.seconds, []
    state = replace(state, num_calls=state.num_calls + 1, ending="stopped")
    for number, command in enumerate(step.commands(folder)):
        if number in state.finished:
            continue
        code = _run(command, folder / f"{number}.out", start, begin + limit_s, clock)
        state = replace(state, seconds=before_s + clock() - begin)
        if code == 0:
            state = replace(state, finished=(*state.finished, number))
        elif code is not None:
            failed.append(f"command {number} ended with {code}")
        write_json(folder / STATE_FILE, state)
        if code is None:
            return state
    state = replace(state, ending="; ".join(failed) or "complete")
    write_json(folder / STATE_FILE, state)
    return state


def _run(
    command: Sequence[str], out: Path, start: Start, deadline: float, clock: Callable[[], float]
) -> int | None:
    """Return the exit code of a command; None if its time was up."""
    left_s = deadline - GRACE_S - clock()
    if left_s <= 0:
        return None
    running = start(command, out)
    try:
        code = running.wait(left_s)
        if code is None:
            running.interrupt()
            code = running.wait(deadline - clock())
            return 0 if code == 0 else None  # it may have been about to end
        return code
    finally:
        running.end()


class _Process:
    def __init__(self, command: Sequence[str], out: Path) -> None:
        with out.open("ab") as stream:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return None

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def start_process(command: Sequence[str], out: Path) -> RunningCommand:
    """Start a command of this machine."""
    return _Process(command, out)
