"""One worker as the clock has it: calls bracketed, and looked into while outputs are held.

Before a turn, or before every call, the judge writes fresh inputs. A call is started by a word in
shared memory and ends with another; the time between, by this process's clock, is its time. While
the worker still holds its outputs the judge reads random places of them from the worker's memory,
in audited calls all of them.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from passnet.graph.numbers import Array
from passnet.judge.fresh import Draw, FreshInputs
from passnet.judge.memory import ControlPage, SharedMemory
from passnet.judge.messages import Arm, Armed, Disarmed, OutputForm
from passnet.judge.probe import Places, read_outputs, read_places, shared
from passnet.judge.process import WorkerFailureError
from passnet.judge.subject import Subject

NS_PER_MS = 1_000_000
SHORTEST_MS = 1e-4
"""A time below 0.1 microseconds is the clock's own grain."""

_POLLS_BETWEEN_LOOKS = 4096
_NUM_WARM_CALLS = 3
_NUM_EMPTY_CALLS = 200
_LARGEST_EMPTY_MS = 0.02
"""An empty bracket takes 1 to 4 microseconds; one that seems longer was held up."""

LATE_WAIT_S = 0.012
"""How long after an audited call its outputs are read again: long enough for a Python thread, which
waits up to 5 milliseconds for its turn."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What every worker does in a turn: a call for each draw, the first of which does not count;
    for each of these the places that are looked at; and the call that is audited, if any, whose
    outputs are held over the next call where `hold` says so.
    """

    draws: list[Draw]
    places: list[list[Places]]
    audited: int | None
    hold: bool


@dataclass(slots=True)
class TurnResult:
    """What came of a turn: the median time of its counted calls, and what was seen."""

    ms: float
    seen: list[list[bytes]] = field(default_factory=list)
    audit: Audit | None = None


@dataclass(slots=True)
class Audit:
    """What an audited call showed: all its outputs, what memory they share, whether they changed
    after the call had ended, and whether the next call changed them.
    """

    outputs: list[Array | None]
    shared: frozenset[str]
    written_late: bool = False
    overwritten: bool = False


class TimedWorker:
    """A worker with its control page.

    Args:
        subject: loaded and run at least once.
        forms: of its outputs.
        call_timeout_s: how long a call may take.
        writes_inputs: whether the graph writes into its arguments; then every call needs new ones.
    """

    def __init__(
        self,
        subject: Subject,
        forms: Sequence[OutputForm],
        call_timeout_s: float,
        writes_inputs: bool = False,
    ) -> None:
        self.worker = subject.worker
        self._subject = subject
        self.forms = forms
        self.empty_ms = 0.0
        self.typical_ms = 0.0
        self._inputs = subject.timed_inputs()
        self._writes_inputs = writes_inputs
        self._timeout_ns = int(call_timeout_s * 1e9)
        self._page = SharedMemory("passnet-control", mmap.PAGESIZE)
        self._words = ControlPage(self._page.map).words
        self._sent = False

    def close(self) -> None:
        """Give the control page back; the worker stays."""
        self._page.close()

    def _arm(self) -> None:
        fds = () if self._sent else (self._page.fd,)
        self._sent = True
        self.worker.ask(Arm(), Armed, self._timeout_ns / 1e9, fds)

    def _disarm(self) -> None:
        self._start(ControlPage.STOP)
        self.worker.receive(Disarmed, self._timeout_ns / 1e9)

    def look(self, fresh: FreshInputs) -> None:
        """Warm the worker up, and measure how long a call takes about."""
        self._arm()
        for _ in range(_NUM_WARM_CALLS):
            self._write(fresh, fresh.draw())
            self.typical_ms = self._start(ControlPage.CALL) / NS_PER_MS
            self._free()
        self._disarm()

    def empty_bracket_ms(self) -> float:
        """The time of a bracket with no call in it: the least of many, as any may be held up."""
        self._arm()
        empty = []
        for _ in range(_NUM_EMPTY_CALLS):
            empty.append(self._start(ControlPage.NOTHING))
            self._free()
        self._disarm()
        return min(min(empty) / NS_PER_MS, _LARGEST_EMPTY_MS)

    def take(self, turn: Turn, fresh: FreshInputs) -> TurnResult:
        """The calls of a turn.

        The first brings code and tables into the cache, whoever ran before, and does not count.
        """
        result = TurnResult(0.0)
        times = []
        self._arm()
        held: list[int] | None = None
        for number, (draw, places) in enumerate(zip(turn.draws, turn.places, strict=True)):
            if self._writes_inputs or number == 0 or draw is not turn.draws[number - 1]:
                self._write(fresh, draw)
            hold = turn.hold and number == turn.audited
            command = ControlPage.HOLD if hold else ControlPage.CALL
            times.append(self._start(command) / NS_PER_MS)
            pointers = self._pointers()
            result.seen.append(read_places(self.worker, pointers, self.forms, places))
            if held is not None and result.audit is not None:
                again = read_outputs(self.worker, held, self.forms)
                result.audit.overwritten = not _equal(result.audit.outputs, again)
            held = pointers if hold else None
            if number == turn.audited:
                result.audit = self._audit(pointers)
            self._free()
        self._disarm()
        counted = sorted(times[1:])
        result.ms = max(counted[len(counted) // 2] - self.empty_ms, SHORTEST_MS)
        return result

    def _audit(self, pointers: list[int]) -> Audit:
        outputs = read_outputs(self.worker, pointers, self.forms)
        arguments = self._subject.argument_addresses()
        audit = Audit(outputs, shared(pointers, self.forms, arguments))
        time.sleep(LATE_WAIT_S)
        again = read_outputs(self.worker, pointers, self.forms)
        audit.written_late = not _equal(outputs, again)
        return audit

    def _write(self, fresh: FreshInputs, draw: Draw) -> None:
        for index, target in enumerate(self._inputs):
            if target is not None:
                fresh.write(draw, index, target)

    def _pointers(self) -> list[int]:
        first = ControlPage.OUTPUTS
        return self._words[first : first + len(self.forms)].tolist()

    def _start(self, command: int) -> int:
        """Give a command and wait for its end; the nanoseconds between."""
        words = self._words
        number = words[ControlPage.GO] + 1
        words[ControlPage.COMMAND] = command
        start = time.perf_counter_ns()
        words[ControlPage.GO] = number
        self._wait(ControlPage.DONE, number, start)
        return time.perf_counter_ns() - start

    def _free(self) -> None:
        """Let the worker free its outputs and get ready for the next call."""
        number = self._words[ControlPage.GO]
        self._words[ControlPage.FREE] = number
        self._wait(ControlPage.READY, number, time.perf_counter_ns())

    def _wait(self, word: int, number: int, start: int) -> None:
        words = self._words
        polls = 0
        while words[word] != number:
            polls += 1
            if polls % _POLLS_BETWEEN_LOOKS == 0:
                if self.worker.has_spoken() and words[word] != number:
                    # A call that ended would show in the words before any message.
                    self.worker.receive(type(None), 1.0)
                if time.perf_counter_ns() - start > self._timeout_ns:
                    self.worker.close()
                    limit = self._timeout_ns / 1e9
                    raise WorkerFailureError(
                        "timeout", "Timeout", f"no end of a call in {limit:g} s"
                    )


def _equal(first: Sequence[Array | None], second: Sequence[Array | None]) -> bool:
    return all(
        one is None or other is None or one.tobytes() == other.tobytes()
        for one, other in zip(first, second, strict=True)
    )
