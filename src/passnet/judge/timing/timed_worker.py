"""One worker as the clock has it: calls bracketed, and looked into while outputs are held.

Before every call the judge writes fresh inputs, and lets the worker read them once, so that they
lie in its cache. A call is started by a word in shared memory and ends with another; the time
between, by this process's clock, is its time. While the worker still holds its outputs the judge
reads random places of them from the worker's memory, in audited calls all of them.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from passnet.judge.processes.loaded_worker import LoadedWorker, output_offsets
from passnet.judge.processes.run_queue import OWN_THREAD, waited_ns
from passnet.judge.protocol.messages import Arm, Armed, Disarmed, Observed, OutputForm
from passnet.judge.protocol.shared_memory import ControlPage, SharedMemory
from passnet.judge.timing.fresh_inputs import Draw, FreshInputs
from passnet.judge.timing.outputs import NS_PER_MS, output_reader
from passnet.judge.timing.probes import ProbedPlaces, SharedPair, outputs_in, shared
from passnet.records.dtypes import Array

SHORTEST_MS = 1e-4
"""A time below 0.1 microseconds is the clock's own grain."""

_POLLS_BETWEEN_LOOKS = 4096
_NUM_WARM_CALLS = 3
_NUM_EMPTY_CALLS = 200
_LARGEST_EMPTY_MS = 0.02
"""An empty bracket takes 1 to 4 microseconds; one that seems longer was held up."""

LATE_WAIT_S = 0.008
"""How long after an audited call its outputs are read again: long enough for a Python thread that
sleeps a while and then waits for its turn (see `worker.SWITCH_INTERVAL_S`)."""

INPUT_RUN = 256
"""Neighbouring elements of an argument that are looked at after a call."""

CallKind: TypeAlias = Literal["timed", "audited", "held", "observed"]
"""timed: some places of the outputs are read. audited: all of them, twice. held: audited, and the
worker holds the outputs over the next call. observed: the worker notes what torch ops replacements
use, which takes time."""


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call of a turn: the values it is called on, and what is looked at.

    `stale` are the values that lie there while the worker warms its cache, where they are to be
    replaced between that and the call: whoever worked ahead of the clock has worked on these.
    """

    draw: Draw
    kind: CallKind = "timed"
    stale: Draw | None = None

    @property
    def is_counted(self) -> bool:
        """Whether its time is that of an ordinary call."""
        return self.stale is None and self.kind != "observed"


@dataclass(frozen=True, slots=True)
class Turn:
    """What every worker does in a turn. The first call brings code and tables into the cache,
    whoever ran before, and does not count. `probes` of the outputs are looked at in every call,
    and `spots` of the arguments (between 0 and 1, one for each): they must not have changed.
    """

    calls: list[PlannedCall]
    probes: list[ProbedPlaces]
    spots: list[float]


@dataclass(slots=True)
class TurnResult:
    """What came of a turn."""

    ms: float = 0.0
    """Median time of its counted calls."""

    held_up: float = 0.0
    """How long worker and judge waited for a processor, as a share of all its time."""

    warm_ms: list[float] = field(default_factory=list)
    """Times in which the worker read its inputs."""

    delivery_ms: list[float] = field(default_factory=list)
    """Times in which it delivered outputs that lie on a device."""

    probed: list[list[bytes]] = field(default_factory=list)
    """What was read of the outputs of every call, probe by probe."""

    changed: set[int] = field(default_factory=set)
    """Arguments that were written to."""

    audit: Audit | None = None
    observed: tuple[Observed, ...] = ()


@dataclass(slots=True)
class Audit:
    """What an audited call showed: all its outputs, what memory they share, whether they changed
    after the call had ended, and whether the next call changed them. An output that lies in an
    argument changes with it, and is left out of both.
    """

    outputs: list[Array | None]
    shared: frozenset[SharedPair]
    written_late: bool = False
    overwritten: bool = False


class TimedWorker:
    """A worker that has run at least once, with its control page."""

    def __init__(self, loaded: LoadedWorker, call_timeout_s: float) -> None:
        self.worker = loaded.worker
        self._loaded = loaded
        self.empty_ms = 0.0
        self.typical_ms = 0.0
        self._inputs = loaded.timed_inputs()
        self._timeout_ns = int(call_timeout_s * 1e9)
        self._page = SharedMemory("passnet-control", mmap.PAGESIZE)
        self._words = ControlPage(self._page.map).words
        self._number = 0  # of the last command; what stands on the page is no evidence
        self._sent = False
        self._delivery: SharedMemory | None = None
        if loaded.device != "cpu":
            _, num_bytes = output_offsets(loaded.forms)
            self._delivery = SharedMemory("passnet-delivery", num_bytes)
        self._outputs = output_reader(loaded, self._delivery, self._start)

    @property
    def forms(self) -> Sequence[OutputForm]:
        """The forms of its outputs."""
        return self._loaded.forms

    @property
    def is_on_device(self) -> bool:
        """Whether its graph runs in memory that the judge cannot reach."""
        return self._delivery is not None

    @property
    def num_inputs(self) -> int:
        """How many arguments the graph has."""
        return len(self._inputs)

    def close(self) -> None:
        """Give the control page back; the worker stays."""
        self._page.close()
        if self._delivery is not None:
            self._delivery.close()

    def _arm(self, observed: frozenset[int] = frozenset()) -> None:
        memories = [] if self._sent else [self._page, self._delivery]
        fds = tuple(memory.fd for memory in memories if memory is not None)
        self._sent = True
        self.worker.ask(Arm(observed), Armed, self._timeout_ns / 1e9, fds)

    def _disarm(self) -> tuple[Observed, ...]:
        self._start(ControlPage.STOP)
        return self.worker.receive(Disarmed, self._timeout_ns / 1e9).observed

    def warm_up(self, fresh: FreshInputs) -> None:
        """Warm the worker up, and measure how long a call takes about."""
        self._arm()
        for _ in range(_NUM_WARM_CALLS):
            self._write(fresh, fresh.draw())
            self._start(ControlPage.WARM)
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

    def burst_ms(self, num_calls: int) -> float:
        """The time of one of so many calls in a row, on the inputs that lie there."""
        self._arm()
        self._words[ControlPage.COUNT] = num_calls
        elapsed = self._start(ControlPage.BURST)
        self._disarm()
        return elapsed / NS_PER_MS / num_calls

    def take(self, turn: Turn, fresh: FreshInputs) -> TurnResult:
        """The calls of a turn."""
        result = TurnResult()
        times = []
        start_ns, waited_before_ns = time.perf_counter_ns(), self._waited_ns()
        self._arm(
            frozenset(number for number, call in enumerate(turn.calls) if call.kind == "observed")
        )
        held: list[bytes] | None = None
        for number, call in enumerate(turn.calls):
            call_start = time.monotonic()
            self._write(fresh, call.stale or call.draw)
            result.warm_ms.append(self._start(ControlPage.WARM) / NS_PER_MS)
            if call.stale is not None:
                self._write(fresh, call.draw)
            elapsed_ms = self._start(ControlPage.CALL) / NS_PER_MS
            if number > 0 and call.is_counted:
                times.append(elapsed_ms)
            pointers = self._pointers()
            delivery_ms = self._outputs.delivered_ms(pointers)
            if delivery_ms is not None:
                result.delivery_ms.append(delivery_ms)
            result.probed.append(self._outputs.places(turn.probes))
            if held is not None and result.audit is not None:
                again = self._outputs.held()
                result.audit.overwritten = _differ(held, again, result.audit.shared)
                held = None
            if call.kind in ("audited", "held"):
                result.audit, last = self._audit(pointers)
                if call.kind == "held":
                    self._outputs.hold()
                    held = last
            self._look_at_inputs(turn, call, fresh, result.changed)
            self._free(keep=held is not None)
            self.worker.spend(time.monotonic() - call_start)
        result.observed = self._disarm()
        waited = self._waited_ns() - waited_before_ns
        result.held_up = waited / (time.perf_counter_ns() - start_ns)
        times.sort()
        result.ms = max(times[len(times) // 2] - self.empty_ms, SHORTEST_MS)
        return result

    def _waited_ns(self) -> int:
        return self.worker.waited_ns() + waited_ns(OWN_THREAD)

    def _look_at_inputs(
        self, turn: Turn, call: PlannedCall, fresh: FreshInputs, changed: set[int]
    ) -> None:
        """Add the arguments that a call has changed: where its turn looks, or all of an audited."""
        for index, (target, spot) in enumerate(zip(self._inputs, turn.spots, strict=True)):
            if target is None or index in changed:
                continue
            whole = call.kind in ("audited", "held") or target.size <= INPUT_RUN
            start = 0 if whole else int(spot * (target.size - INPUT_RUN))
            stop = target.size if whole else start + INPUT_RUN
            if not fresh.holds(call.draw, index, target, start, stop):
                changed.add(index)

    def _audit(self, pointers: list[int]) -> tuple[Audit, list[bytes]]:
        """What the outputs of the call that has just ended show, and their bytes at the end."""
        whole = self._outputs.whole()
        arguments = self._loaded.argument_addresses()
        audit = Audit(self._outputs.arrays(whole), shared(pointers, self.forms, arguments))
        time.sleep(LATE_WAIT_S)
        again = self._outputs.whole()
        audit.written_late = _differ(whole, again, audit.shared)
        return audit, again

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
        self._number = number = self._number + 1
        words[ControlPage.COMMAND] = command
        start = time.perf_counter_ns()
        words[ControlPage.GO] = number
        self._wait(ControlPage.DONE, number, start)
        return time.perf_counter_ns() - start

    def _free(self, keep: bool = False) -> None:
        """Let the worker free its outputs, or keep them over the next call, and get ready."""
        number = self._number
        self._words[ControlPage.KEEP] = keep
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
                    text = f"no end of a call in {self._timeout_ns / 1e9:g} s"
                    raise self.worker.end_for("timeout", "Timeout", text)


def _differ(before: Sequence[bytes], after: Sequence[bytes], pairs: frozenset[SharedPair]) -> bool:
    """Whether an output that lies in no argument is not what it was."""
    moving = outputs_in(pairs, "argument")
    return any(
        earlier != later
        for number, (earlier, later) in enumerate(zip(before, after, strict=True))
        if number not in moving
    )
