"""One worker as the clock has it: it stands still, runs for a burst of calls, and is read.

A burst is calls on different arguments, written while the worker stood still. Its time is the
worker's CPU time until it stands still again; see `burst_ns`. The judge draws the places to read
only when no code of the worker can run any more.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from passnet.core.records.dtypes import Array
from passnet.judge.processes.loaded_worker import LoadedWorker, output_offsets
from passnet.judge.processes.standstill import GoneError, Spent, Standstill, StopPlace
from passnet.judge.processes.worker_process import counted_s
from passnet.judge.protocol.messages import (
    OVERHEADS,
    Arm,
    Armed,
    Disarmed,
    Observed,
    OutputForm,
    OverheadName,
)
from passnet.judge.protocol.shared_memory import ControlPage, SharedMemory, lay_out_slots
from passnet.judge.timing.fresh_inputs import Draw, FreshInputs
from passnet.judge.timing.outputs import output_reader
from passnet.judge.timing.probes import (
    ProbedPlaces,
    SharedPair,
    outputs_in,
    overlap_between_calls,
    shared,
)

BURST_BYTES = 4 * 2**20
"""Memory of a burst's arguments and outputs: those of all workers fit their shared cache."""
FEW_CALLS, MAX_BURST_BYTES = 8, 16 * 2**20
"""Calls that may take more memory, up to this: over fewer, the effect of addresses does not average
out. A call that alone needs more is made twice in a burst."""
LEAST_CALLS = 2
"""Least calls of a burst, so that a call can be seen to overwrite the output of another."""
MAX_SEEN = 2
"""Calls of a burst that are checked, drawn when it has ended."""
LEAST_CALL_S, MOST_CALLS_S = 2.0, 100.0
"""A timed call may take this long, and this many times as long as the last call before: whoever
waits for a process that was ended must not hold up others."""
LATE_WAIT_MS = 8
"""Time that a worker runs before its outputs are read again: long enough for a Python thread that
sleeps a while and then waits for its turn (see `worker.SWITCH_INTERVAL_S`)."""
COUNTED = (ControlPage.CALL, ControlPage.OVERHEAD, ControlPage.EMPTY)
"""Orders whose time counts."""
EAGER_POLLS = 24
"""Questions without a pause whether a worker stands still again, while its time does not count:
waking up takes longer than most such orders, and asking slows a processor of the same core down. On
a device wall time counts: no pause."""
MARK_BYTES = 2 * 2**20
"""Bytes of outputs that are overwritten after a check, roughly, and at most in one output."""
MARK = memoryview(b"\xff" * MARK_BYTES)
"""The bytes that overwrite them: NaN in every floating-point type, and -1."""
MAX_HELD_CALLS = 16
"""Most calls of a held burst that are compared with what they were."""
INPUT_RUN = 256
"""Neighbouring elements of an argument that are checked after a call."""

T = TypeVar("T")

SLOT_MEMORY = "passnet-slots"


@dataclass(frozen=True, slots=True)
class Look:
    """The places to check in `chosen` calls: in outputs, at spots (0 to 1) in arguments, or all."""

    chosen: tuple[int, ...]
    order: tuple[int, ...]
    """All calls of the burst, in random order, `chosen` first."""
    probes: list[ProbedPlaces]
    spots: list[float]
    is_whole: bool = False
    awaits_writes: bool = True


@dataclass(slots=True)
class SeenCall:
    """One checked call: its outputs at places, all in a whole look, and changed arguments."""

    draw: Draw
    places: list[bytes]
    whole: list[Array | None] | None
    changed: set[int]
    shared: frozenset[SharedPair]
    follows: frozenset[int] = frozenset()
    """Outputs that change when the judge writes into the arguments."""


@dataclass(slots=True)
class Held:
    """The kept outputs of a burst: their addresses, and the bytes at some places."""

    pointers: list[list[int]]
    left_out: set[int]
    calls: tuple[int, ...]
    probes: list[ProbedPlaces]
    places: list[list[bytes]]


@dataclass(slots=True)
class Seen:
    """The result of checking a burst."""

    calls: list[SeenCall]

    is_overwritten: bool
    """True if outputs of two calls overlap in memory."""
    is_written_late: bool
    """True if an output outside of arguments changed while the worker ran without an order."""
    up_ns: int | None
    """On a device, the time to copy the arguments there."""
    down_ns: int | None
    """On a device, the time to copy the outputs back."""


class TimedWorker:
    """A worker that has run at least once, and takes orders from now on; close it.

    At most `num_slots` calls make a burst; each has arguments of its own.
    """

    def __init__(self, loaded: LoadedWorker, max_calls: int, call_timeout_s: float) -> None:
        self.worker = loaded.worker
        self._loaded = loaded
        self._message_timeout_s = call_timeout_s
        self._timeout_s = min(call_timeout_s, LEAST_CALL_S + MOST_CALLS_S * loaded.call_s)
        layouts = loaded.prepared.layouts
        _, input_bytes = lay_out_slots(layouts, 1)
        _, output_bytes = output_offsets(loaded.forms)
        call_bytes = max(input_bytes + output_bytes, 1)
        fitting = max(BURST_BYTES // call_bytes, min(FEW_CALLS, MAX_BURST_BYTES // call_bytes))
        self.num_slots = max(LEAST_CALLS, min(max_calls, fitting))
        self._layouts, num_bytes = lay_out_slots(layouts, self.num_slots)
        page_bytes = ControlPage.num_bytes(self.num_slots, len(loaded.forms))
        self._memories = [
            SharedMemory("passnet-control", page_bytes),
            SharedMemory(SLOT_MEMORY, num_bytes),
        ]
        delivery = None
        if loaded.device != "cpu":
            delivery = SharedMemory("passnet-delivery", LEAST_CALLS * output_bytes)
            self._memories.append(delivery)
        self.is_on_device = delivery is not None
        self._words = ControlPage(self._memories[0].map).words
        self._slots: list[list[Array | None]] = [
            [
                self._memories[1]
                .array(layout.dtype, layout.shape, layout.offsets[slot])
                .reshape(-1)
                if layout.number is None
                else None
                for layout in self._layouts
            ]
            for slot in range(self.num_slots)
        ]
        self._outputs = output_reader(loaded, delivery, self._deliver)
        self._draws: list[Draw] = []
        self._up_ns: int | None = None
        self._held: Held | None = None
        self._still: Standstill | None = None
        self._addresses: list[int] = []

    @property
    def forms(self) -> Sequence[OutputForm]:
        """Return the forms of its outputs."""
        return self._loaded.forms

    @property
    def num_inputs(self) -> int:
        """Return the number of arguments of the graph."""
        return len(self._layouts)

    @property
    def way(self) -> str | None:
        """Return the way of calling of a pass folder; None for code of torch alone."""
        candidate = self._loaded.candidate
        return candidate.call if candidate.kind == "passes" else None

    def is_direct(self, other: TimedWorker) -> bool:
        """Return whether it calls directly the same passes that another worker has, and no faster.

        What Inductor compiles takes longer directly: Dynamo spares it the nesting of arguments.
        """
        own, candidate = self._loaded.candidate, other._loaded.candidate
        return own.residual == "eager" and own.is_direct_call_of(candidate)

    def arm(
        self, processors: set[int] | None = None, overheads: tuple[OverheadName, ...] = ()
    ) -> None:
        """Let it take orders, on some processors alone; it stands still when this returns.

        Nothing else runs in its sandbox from then on. It gets ready for the ways of calling whose
        `overheads` will be measured.
        """
        if not self.is_on_device:
            self.worker.stay_alone()
        sizes = tuple(memory.num_bytes for memory in self._memories)
        fds = tuple(memory.fd for memory in self._memories)
        request = Arm(self._layouts, sizes, overheads)
        reply = self.worker.ask(request, Armed, self._message_timeout_s, fds)
        if overheads:
            self._loaded.restore(0)
        if processors:
            self.worker.keep_to(processors)
        self._still = self.worker.standstill()
        self._watched(lambda still: still.await_stop(self._look()))
        base = self.worker.mapped_at(SLOT_MEMORY)
        offsets = [
            0 if layout.number is not None else layout.offsets[slot]
            for slot in range(self.num_slots)
            for layout in self._layouts
        ]
        is_mapped = base is not None and len(reply.addresses) != len(offsets)
        self._addresses = (
            [(base or 0) + offset for offset in offsets] if is_mapped else list(reply.addresses)
        )

    def close(self) -> None:
        """Free its memory; the worker stays, and runs on where it stood still."""
        self._let_go()
        for memory in self._memories:
            memory.close()

    def _let_go(self) -> None:
        if self._still is not None:
            self._still.release()
            self._still.close()
            self._still = None

    def leave(self) -> tuple[Observed, ...]:
        """Let it go back to messages; return its observations."""
        assert self._still is not None, "armed first"
        self._give(ControlPage.LEAVE)
        self._let_go()
        self._held = None  # it frees all outputs
        return self.worker.receive(Disarmed, self._message_timeout_s).observed

    def burst(self, fresh: FreshInputs, draws: Sequence[Draw]) -> Spent:
        """Call it on each of these draws, on arguments of its own."""
        self.write(fresh, draws)
        return self.call(len(draws))

    def write(self, fresh: FreshInputs, draws: Sequence[Draw]) -> None:
        """Write the arguments of calls to come."""
        self._draws = list(draws)
        for slot, draw in zip(self._slots, draws, strict=False):
            for index, target in enumerate(slot):
                if target is not None:
                    fresh.write(draw, index, target)

    def order(self, kind: int, count: int = 0) -> Spent:
        """Give it an order for so many calls, and wait until it stands still again."""
        words = self._words
        number = self._give(kind, count)
        eager_polls = 0 if kind in COUNTED else EAGER_POLLS
        if self.is_on_device:
            eager_polls = sys.maxsize
        num_calls = max(count, 1)
        spent = self._watched(lambda still: still.run(self._look(num_calls), eager_polls))
        self._expect_silence()
        self.worker.check_memory()
        if words[ControlPage.DONE] != number:
            text = "the worker stood still before it had finished its order"
            raise self.worker.end_for("crash", "Protocol", text)
        self._loaded.note_calls(ControlPage.num_calls(kind, count))
        times_s = (spent.wall_ns / 1e9, spent.waited_ns / 1e9, spent.cpu_ns / 1e9)
        self.worker.spend(counted_s(*times_s))
        return spent

    def call(self, count: int) -> Spent:
        """Call the graph on so many slots as they are; on a device they are copied up."""
        if self.is_on_device:
            self._up_ns = self.order(ControlPage.UP, count).wall_ns
        return self.order(ControlPage.CALL, count)

    def argument(self, slot: int, index: int) -> Array:
        """Return the memory of a tensor argument of a slot, flat."""
        target = self._slots[slot][index]
        assert target is not None, "a number has no memory"
        return target

    def overwrite(self, slot: int, index: int, values: Array) -> None:
        """Give an argument of a slot other values than its draw has."""
        np.copyto(self.argument(slot, index), values)

    def warm_up(self, count: int, num_bytes_aside: int) -> None:
        """Call the graph on slots as they are, allocations moved by so many bytes; free all."""
        if self.is_on_device and count:
            self.order(ControlPage.UP, count)
        self._words[ControlPage.ASIDE] = num_bytes_aside
        self.order(ControlPage.WARM, count)

    def free(self) -> None:
        """Let it free all outputs."""
        self.order(ControlPage.FREE)

    def look_at(self, fresh: FreshInputs, look: Look) -> Seen:
        """Return the results of the last burst in memory."""
        pointers = self._pointers(len(self._draws))
        down_ns = self._outputs.fetch(look.chosen, pointers, look.is_whole)
        whole = self._whole(look) if look.is_whole else None
        calls = []
        for number, call in enumerate(look.chosen):
            calls.append(
                SeenCall(
                    self._draws[call],
                    self._outputs.places(number, look.probes),
                    None if whole is None else self._outputs.arrays(whole[number]),
                    self._changed(fresh, look, call),
                    shared(pointers[call], self.forms, self._argument_spans(call)),
                )
            )
        inside = outputs_in(calls[0].shared, "argument") if calls else set()
        is_overwritten = overlap_between_calls(pointers, self.forms, inside)
        is_written_late = False
        if whole is not None and look.awaits_writes:
            self.order(ControlPage.IDLE, LATE_WAIT_MS)
            self._outputs.fetch(look.chosen, pointers, is_whole=False)
            is_written_late = _differ(whole, self._whole(look), inside)
        if not self.is_on_device:
            for number, call in enumerate(calls):
                call.follows = self._followers(number, look)
        return Seen(calls, is_overwritten, is_written_late, self._up_ns, down_ns)

    def _followers(self, number: int, look: Look) -> frozenset[int]:
        """Return the outputs of a checked call that change if its arguments are inverted.

        Then they lie in the same pages, at whatever addresses.
        """
        arguments = [slot for slot in self._slots[look.chosen[number]] if slot is not None]
        before = self._outputs.places(number, look.probes)
        for argument in arguments:
            np.invert(argument.view(np.uint8), out=argument.view(np.uint8))
        after = self._outputs.places(number, look.probes)
        for argument in arguments:
            np.invert(argument.view(np.uint8), out=argument.view(np.uint8))
        return _changed_outputs(look.probes, before, after)

    def mark(self, look: Look, seen: Seen) -> bool:
        """Overwrite outputs of the last burst, the checked ones first; they are about to be freed.

        A later call that does not write its whole output is wrong then. Return whether the outputs
        of another call changed too: they lie in the same pages.
        """
        left_out = set[int]().union(*(call.follows for call in seen.calls))
        left_out |= outputs_in(seen.calls[0].shared, "argument")
        if self.is_on_device or seen.is_overwritten:
            return False
        pointers, num_bytes, changed = self._pointers(len(self._draws)), 0, frozenset[int]()
        last = len(look.chosen) - 1
        self._outputs.fetch(look.chosen, pointers, is_whole=False)
        before = self._outputs.places(last, look.probes)
        for position, call in enumerate(look.order):
            if position > last and num_bytes > MARK_BYTES:
                break
            if position == last and position:
                after = self._outputs.places(last, look.probes)
                changed = _changed_outputs(look.probes, before, after) - left_out
            for number, form in enumerate(self.forms):
                if number not in left_out and form.kind == "tensor":
                    num_bytes += self._overwrite(pointers[call][number], form.span_bytes)
        return bool(changed)

    def _overwrite(self, address: int, num_bytes: int) -> int:
        """Overwrite an output, or a random part of a large one; return the number of bytes."""
        start = secrets.randbelow(max(num_bytes - MARK_BYTES, 0) + 1)
        self.worker.write(address + start, MARK[: min(num_bytes, MARK_BYTES)])
        return min(num_bytes, MARK_BYTES)

    def hold(self, look: Look) -> None:
        """Let it keep the outputs of the last burst until it leaves; see `held_fault`."""
        pointers = self._pointers(len(self._draws))
        pairs = [
            shared(pointers[call], self.forms, self._argument_spans(call)) for call in look.order
        ]
        left_out = outputs_in(frozenset[SharedPair]().union(*pairs), "argument")
        held = Held(pointers, left_out, look.order[:MAX_HELD_CALLS], look.probes, [])
        held.places = self._held_places(held)
        self._held = held
        self.order(ControlPage.HOLD)

    @property
    def may_hold(self) -> bool:
        """Return whether it can keep the outputs of a burst: once, and not on a device."""
        return self._held is None and not self.is_on_device

    def held_fault(self) -> str | None:
        """Return a sentence if held outputs changed, or overlap those of the last burst."""
        held = self._held
        if held is None:
            return None
        pointers = [*held.pointers, *self._pointers(len(self._draws))]
        if overlap_between_calls(pointers, self.forms, held.left_out):
            return "an output lies in one of an earlier burst that is still in use"
        pairs = zip(held.calls, held.places, self._held_places(held), strict=True)
        for call, before, after in pairs:
            for output in sorted(_changed_outputs(held.probes, before, after) - held.left_out):
                return f"output {output} of call {call} changed while it was still in use"
        return None

    def _held_places(self, held: Held) -> list[list[bytes]]:
        self._outputs.fetch(held.calls, held.pointers, is_whole=False)
        return [self._outputs.places(number, held.probes) for number in range(len(held.calls))]

    def overhead(self, way: OverheadName, count: int) -> Spent:
        """Make calls of a graph without ops in a way of calling, for their time alone."""
        self._words[ControlPage.ASIDE] = OVERHEADS.index(way)
        return self.order(ControlPage.OVERHEAD, count)

    def _whole(self, look: Look) -> list[list[bytes]]:
        return [self._outputs.whole(number) for number in range(len(look.chosen))]

    def observe(self, fresh: FreshInputs, draw: Draw) -> None:
        """Make one call, and let the worker note the torch ops of replacements."""
        self.write(fresh, [draw])
        if self.is_on_device:
            self.order(ControlPage.UP, 1)
        self.order(ControlPage.OBSERVE, 1)

    def stop_offsets(self) -> list[int]:
        """Return stack offsets that hold the same addresses at every standstill of the oracle."""
        stops = self._stops()
        return self._still.returns(*stops) if self._still and stops else []

    def still_same(self, offsets: Sequence[int]) -> list[int]:
        """Return the `stop_offsets` with the same addresses again; remains of calls can differ."""
        stops = self._stops()
        if stops is None:
            return list(offsets)
        birth, present = stops
        return [offset for offset in offsets if present.word(offset) == birth.word(offset)]

    def stops_elsewhere(self, offsets: Sequence[int]) -> bool:
        """Return whether it stands still in another place than before any other code came to it."""
        stops = self._stops()
        return stops is not None and not stops[0].is_same(stops[1], offsets)

    def _stops(self) -> tuple[StopPlace, StopPlace] | None:
        birth, present = self.worker.birth, self._still.place() if self._still else None
        return None if birth is None or present is None else (birth, present)

    def ran_meanwhile_ns(self) -> int:
        """Return its CPU time while it should have stood still."""
        return self._still.ran_meanwhile_ns() if self._still else 0

    def _deliver(self, calls: Sequence[int], is_whole: bool) -> int:
        first = ControlPage.OUTPUTS
        for number, call in enumerate(calls):
            self._words[first + number] = call
        kind = ControlPage.DOWN_ALL if is_whole else ControlPage.DOWN
        return self.order(kind, len(calls)).wall_ns

    def _give(self, kind: int, count: int = 0) -> int:
        words, number = self._words, secrets.randbits(62)
        words[ControlPage.ORDER], words[ControlPage.COUNT] = kind, count
        words[ControlPage.GO], words[ControlPage.DONE] = number, -1
        return number

    def _pointers(self, num_calls: int) -> list[list[int]]:
        count, first = len(self.forms), ControlPage.OUTPUTS
        words = self._words[first : first + num_calls * count].tolist()
        return [words[call * count : (call + 1) * count] for call in range(num_calls)]

    def _argument_spans(self, slot: int) -> dict[int, range]:
        first = slot * self.num_inputs
        return {
            index: range(address, address + target.nbytes)
            for index, (target, address) in enumerate(
                zip(self._slots[slot], self._addresses[first:], strict=False)
            )
            if target is not None
        }

    def _changed(self, fresh: FreshInputs, look: Look, call: int) -> set[int]:
        changed = set()
        for index, (target, spot) in enumerate(zip(self._slots[call], look.spots, strict=True)):
            if target is None:
                continue
            whole = look.is_whole or target.size <= INPUT_RUN
            start = 0 if whole else int(spot * (target.size - INPUT_RUN))
            stop = target.size if whole else start + INPUT_RUN
            if not fresh.holds(self._draws[call], index, target, start, stop):
                changed.add(index)
        return changed

    def _look(self, num_calls: int = 1) -> Callable[[], None]:
        """Return a check that ends the wait for a worker that has failed, or takes too long."""
        allowed_s = min(self._timeout_s * num_calls, self.worker.left_s)
        elapsed_s = self.worker.stopwatch()

        def look() -> None:
            self._expect_silence()
            self.worker.check_memory()
            if elapsed_s() > allowed_s:
                self.worker.spend(allowed_s)  # ends the worker if nothing remains
                text = f"no end of {num_calls} calls in {allowed_s:g} s"
                raise self.worker.end_for("timeout", "Timeout", text)

        return look

    def _expect_silence(self) -> None:
        """End a worker that sends a message, as none is due while it takes orders."""
        if self.worker.has_spoken():
            self.worker.receive(type(None), 1.0)

    def _watched(self, action: Callable[[Standstill], T]) -> T:
        assert self._still is not None, "armed first"
        try:
            return action(self._still)
        except GoneError:
            raise self.worker.died("end of stream") from None


def _changed_outputs(
    probes: Sequence[ProbedPlaces], before: Sequence[bytes], after: Sequence[bytes]
) -> frozenset[int]:
    """Return the outputs with other bytes at some places."""
    pairs = zip(probes, before, after, strict=True)
    return frozenset(probe.output for probe, first, second in pairs if first != second)


def _differ(before: list[list[bytes]], after: list[list[bytes]], left_out: Container[int]) -> bool:
    return any(
        first != second
        for pair in zip(before, after, strict=True)
        for number, (first, second) in enumerate(zip(*pair, strict=True))
        if number not in left_out
    )


def burst_ns(spent: Spent, num_threads: int, is_on_device: bool) -> int:
    """Return the time of a burst.

    It is the CPU time of the worker's threads, which excludes other programs. If a worker waited by
    itself, or may have several threads, it is wall time, less the waiting of its main thread for a
    processor that its own other threads cannot have caused. If it started threads or processes,
    which may have ended with their work, it is all of the wall time. Where one thread is given,
    work on a second processor counts like work on the first.
    """
    if spent.num_started:
        return max(spent.wall_ns, spent.cpu_ns if num_threads == 1 else 0)
    if not is_on_device and num_threads == 1 and spent.num_waits <= 1:
        return spent.cpu_ns
    by_others = max(0, spent.waited_ns - (spent.cpu_ns - spent.main_ns))
    return max(spent.wall_ns - by_others, spent.cpu_ns if num_threads == 1 else 0)
