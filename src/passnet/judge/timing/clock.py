"""The judge's clock: rounds with one burst of calls a turn for every worker.

Rounds visit the workers forwards and backwards (ABBA), so that a drift of the machine falls on all
alike. A burst on older values warms the caches; the next one has fresh inputs, drawn for one turn.
When all workers have run it, some of its calls are drawn and checked against the oracle, another
worker of the reference, which learns the inputs then. The overhead of a burst is measured on the
oracle, which no candidate can slow down, and subtracted for all.
"""

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from passnet.core.jobs.children import shares_core, spinning
from passnet.judge.processes.loaded_worker import PreparedGraph
from passnet.judge.processes.standstill import Spent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import (
    MAX_REPORTS,
    OVERHEADS,
    OverheadName,
)
from passnet.judge.protocol.shared_memory import ControlPage
from passnet.judge.score.tolerance import CORRECT_AT
from passnet.judge.settings import TimingPlan
from passnet.judge.timing import probes
from passnet.judge.timing.cold_caches import COLD_CALLS, ColdCaches
from passnet.judge.timing.estimate import Rounds, low_mean, speedup
from passnet.judge.timing.fresh_inputs import (
    EXTREME_SET,
    FRESH_SET,
    RECORDED_SET,
    Draw,
    FreshInputs,
)
from passnet.judge.timing.measurement import Measurement, WorkerTiming
from passnet.judge.timing.measurement_findings import (
    disturbance,
    early_work,
    late_work,
    overhead_findings,
)
from passnet.judge.timing.timed_worker import (
    LEAST_CALLS,
    MAX_SEEN,
    Look,
    Seen,
    TimedWorker,
    burst_ns,
)
from passnet.judge.timing.worker_record import NS_PER_MS, SHORTEST_MS, WorkerRecord
from passnet.judge.timing.wrong_answers import explain
from passnet.judge.verdict.findings import finding

EXTREME_SHARE = 0.125
"""Share of timed calls on extreme inputs: enough to see in every measurement a shortcut that fails
on them, few enough to keep the time that of usual inputs."""
NUM_WARM_BURSTS = 5
"""Bursts that are not counted: the first ones page memory in, and show the length of a call."""
WARM_CALLS = 25
"""Most calls in the last of these."""
MAX_BYTES_ASIDE = 2**20
"""Most bytes that a worker sets aside before a burst, drawn for every turn. The addresses of
tensors make two runs of one program differ by up to 15 % if tensors are about as large as the
second-level cache (1 MiB here). Drawn anew, addresses average out; with 8 MiB, cold pages cost more
than the draws gain."""

SLOW_ROUNDS = 3
SLOW_CALLS = 2
"""Enough rounds, and counted calls in a turn, for a slow call: twelve in all. What one call leaves
in caches or sets aside says nothing about a call of 20 ms: none warms up before."""
LEAST_LOOKS = 16
"""Bursts of a worker that are compared with the reference's, at least and roughly. With 8 places in
two calls of each, a missing hundredth of the output stays unseen once in thirteen times."""
ORDERS_MS = 3.0
"""Time of a turn besides calls, roughly: orders, writing, and checking."""
PRECISE_ROUNDS, ROUNDS_BETWEEN = 16, 4
"""Rounds before the first question whether a measurement is precise, and between two."""
LEAST_ELSEWHERE, ELSEWHERE_SHARE = 3, 0.02
"""Turns that end in foreign code, and their share of all, that prove a worker's loop taken over."""
NUM_OVERHEADS = 8
"""Bursts from which the time is known that a way of calling takes by itself."""
HOT_CALLS = 20
"""Calls in a row, on the same inputs, that give the hot time on a device."""


T = TypeVar("T")


def interleave(
    workers: Sequence[TimedWorker],
    oracle: TimedWorker,
    plan: TimingPlan,
    fresh: FreshInputs,
    random: np.random.Generator,
    prepared: PreparedGraph,
    num_threads: int = 1,
) -> Measurement:
    """Measure workers in rounds of two turns each: forwards, then backwards (ABBA).

    The order rotates from round to round, so that each worker is as often next to any other one: a
    turn leaves its traces in the shared cache. The reference comes first; `oracle` is another
    worker of it, which is not timed. `random` decides where to check, so nobody outside may know
    its state. Raises WorkerFailureError if the reference or the oracle fails.
    """
    usual = os.sched_getaffinity(0)
    own = worker_processors = usual
    if len(usual) > num_threads:  # one for the judge, others for its workers, in turns
        own, worker_processors = {min(usual)}, set(sorted(usual)[-num_threads:])
    os.sched_setaffinity(0, own)
    awake = worker_processors | {each for each in own if not shares_core(each, worker_processors)}
    try:
        records = [WorkerRecord() for _ in workers]
        rounds = _Interleaving(
            workers, oracle, plan, fresh, random, prepared, records, num_threads, worker_processors
        )
        with spinning(0, awake if plan.keeps_awake else ()):
            return rounds.measure()
    finally:
        os.sched_setaffinity(0, usual)


@dataclass(slots=True)
class _Interleaving:
    _workers: Sequence[TimedWorker]
    _oracle: TimedWorker
    _plan: TimingPlan
    _fresh: FreshInputs
    _random: np.random.Generator
    _prepared: PreparedGraph
    _records: Sequence[WorkerRecord]
    _num_threads: int
    _processors: set[int]
    _num_calls: int = LEAST_CALLS
    _num_warm_calls: int = 1
    _look_share: float = 1.0
    _empty_ns: list[int] = field(default_factory=list)
    _held_up: list[float] = field(default_factory=list)
    _overhead_ns: dict[OverheadName, list[int]] = field(default_factory=dict)
    _shared: frozenset[probes.SharedPair] = frozenset()
    _num_turns: int = 0
    _held_turn: int = -1
    _stop_offsets: list[int] = field(default_factory=list)

    def measure(self) -> Measurement:
        """Run all rounds and return their results."""
        ways = {worker.way for worker in self._workers}
        self._overhead_ns = {way: [] for way in OVERHEADS if way in ways}
        self._oracle.arm(self._processors, tuple(self._overhead_ns))
        self._stop_offsets = self._oracle.stop_offsets()
        for number in range(NUM_WARM_BURSTS):
            start = time.monotonic()
            self._call_oracle([self._fresh.draw()])
            self._oracle.free()
            if number > 1 and (time.monotonic() - start) * 1e3 >= self._plan.slow_ms:
                break
        min_rounds = self._warm_up()
        self._held_turn = int(self._random.integers(1, 2 * min_rounds))
        deadline = time.monotonic() + self._plan.seconds * len(self._workers)
        for number in range(self._plan.max_rounds):
            if number >= min_rounds and time.monotonic() > deadline:
                break
            start = number % len(self._workers)
            order = [*range(start, len(self._workers)), *range(start)]
            forwards, backwards = self._turn(order), self._turn(order[::-1])
            # A worker's second turn may follow its own first one, and then finds a warm cache.
            is_swapped = bool(number // len(self._workers) % 2)
            for index in forwards.keys() & backwards.keys():
                pair = (forwards[index], backwards[index])
                self._records[index].bursts_ns.append(pair[::-1] if is_swapped else pair)
            if self._is_precise(number + 1):
                break
        self._turn(range(len(self._workers)), is_last=True)  # read whole, and not counted
        for index in range(len(self._workers)):
            if fault := self._visit(index, lambda worker: worker.held_fault()):
                self._records[index].note([finding("static_buffer", fault)])
        return self._measurement()

    def _is_precise(self, num_rounds: int) -> bool:
        if num_rounds < PRECISE_ROUNDS or num_rounds % ROUNDS_BETWEEN:
            return False
        if any(record.num_looks < LEAST_LOOKS for record in self._records if not record.failure):
            return False
        reference, *candidates = (
            np.array(self._rounds_ms(record)) for record in self._records if not record.failure
        )
        speedups = [
            speedup(reference, times) for times in candidates if len(times) == len(reference)
        ]
        return all(
            ratio.high - ratio.low <= 2 * self._plan.precision * ratio.value for ratio in speedups
        )

    def _visit(self, index: int, action: Callable[[TimedWorker], T]) -> T | None:
        """Return the result of an action on a worker; None if it fails, or failed before."""
        record = self._records[index]
        try:
            return None if record.failure else action(self._workers[index])
        except WorkerFailureError as failure:
            if index == 0:
                raise
            record.failure = failure
            return None

    def _warm_up(self) -> int:
        """Let all workers stand still, choose the calls of a burst, return the least rounds."""
        plan, fresh = self._plan, self._fresh
        most = min(worker.num_slots for worker in self._workers)
        slowest_ms = SHORTEST_MS
        for index in range(len(self._workers)):
            self._visit(index, lambda worker: worker.arm(self._processors))
            count, call_ms = LEAST_CALLS, math.inf
            for number in range(NUM_WARM_BURSTS):
                if number and plan.slow_ms <= call_ms < math.inf:
                    break
                draws = [fresh.draw() for _ in range(count)]
                ns = self._visit(index, lambda worker, draws=draws: self._burst(worker, draws))
                if ns is not None:  # the first are slow; many calls hide the overhead of a burst
                    call_ms = min(call_ms, max(ns / count / NS_PER_MS, SHORTEST_MS))
                    count = max(LEAST_CALLS, min(most, WARM_CALLS, int(plan.burst_ms / call_ms)))
            if call_ms < math.inf:
                slowest_ms = max(slowest_ms, call_ms)
        min_rounds, min_calls = plan.min_rounds, plan.min_calls
        is_slow = slowest_ms >= plan.slow_ms
        if is_slow:
            min_rounds, min_calls = min(min_rounds, SLOW_ROUNDS), min(min_calls, SLOW_CALLS)
        fitting = max(min_calls, min(plan.max_calls, int(plan.burst_ms / slowest_ms)))
        self._num_calls = max(LEAST_CALLS, min(fitting, most))
        warm_calls = min(self._num_calls, int(plan.burst_ms / slowest_ms))
        self._num_warm_calls = 0 if is_slow else max(1, warm_calls)
        turn_ms = (self._num_calls + self._num_warm_calls) * slowest_ms + ORDERS_MS
        num_turns = max(2 * min_rounds, min(2 * plan.max_rounds, plan.seconds * 1e3 / turn_ms))
        self._look_share = max(plan.look_share, LEAST_LOOKS / num_turns)
        if self._oracle.is_on_device:
            self._look_share = 1.0
        for index in range(0 if is_slow else len(self._workers)):
            draws = self._draws()
            self._visit(index, lambda worker, draws=draws: self._burst(worker, draws))
        return min_rounds

    def _burst(self, worker: TimedWorker, draws: Sequence[Draw]) -> int:
        spent = worker.burst(self._fresh, draws)
        worker.free()
        return self._ns(spent)

    def _ns(self, spent: Spent) -> int:
        return burst_ns(spent, self._num_threads, self._oracle.is_on_device)

    def _draws(self, is_last: bool = False) -> list[Draw]:
        """Draw the inputs of a burst, a share of them extreme, at least one in the last."""
        count, fresh = self._num_calls, self._fresh
        mean_extreme = EXTREME_SHARE * count if fresh.num_sets > EXTREME_SET else 0.0
        num_extreme = int(mean_extreme) + (self._random.random() < mean_extreme % 1)
        if is_last and fresh.num_sets > EXTREME_SET:
            num_extreme = max(num_extreme, 1)
        hard = [int(self._random.integers(EXTREME_SET, fresh.num_sets)) for _ in range(num_extreme)]
        sets = hard + [FRESH_SET] * (count - num_extreme)
        return [fresh.draw(number) for number in self._random.permutation(sets).tolist()]

    def _turn(self, order: Sequence[int], is_last: bool = False) -> dict[int, int]:
        """Run one burst of each worker; return the nanoseconds of all that succeeded."""
        is_whole = is_last or self._random.random() < self._plan.audit_share
        self._num_turns += 1
        draws = self._draws(is_last)
        times = self._bursts(order, draws, is_whole)
        if is_whole:
            others = self._random.permutation(range(1, len(self._workers))).tolist()
            recorded = [self._fresh.draw(RECORDED_SET) for _ in range(self._num_calls)]
            # For its worker a burst like any other, but uncounted.
            self._bursts(others, recorded, is_whole)
            for index in others:
                draw = self._fresh.draw()
                self._visit(index, lambda worker, draw=draw: worker.observe(self._fresh, draw))
                self._visit(index, lambda worker: worker.free())
        return times

    def _bursts(
        self, order: Sequence[int], draws: Sequence[Draw], is_whole: bool
    ) -> dict[int, int]:
        """Run one burst of each worker on the same values, and check some of them once all ran.

        Until then the oracle does not know the values, so nothing has the right answers.
        """
        times = {}
        for index in order:
            ns = self._visit(index, lambda worker, i=index: self._take(worker, i, draws))
            if ns is not None:
                times[index] = ns
        look: Look | None = None
        expected: Seen | None = None
        for index in times:
            # The reference too: what another processor has read is slower to write to again. Each
            # by itself: how long the others took could tell a worker that this is a turn of looks.
            if self._num_turns == self._held_turn and self._workers[index].may_hold:
                held = self._draw_look(draws, is_whole=False)
                self._visit(index, lambda worker, held=held: worker.hold(held))
            elif is_whole or self._random.random() < self._look_share:
                look = look or self._draw_look(draws, is_whole)
                expected = expected or self._expected(look, draws)
                check = partial(self._look, index=index, look=look, expected=expected)
                self._visit(index, check)
            else:
                self._visit(index, lambda worker: worker.free())
        return times

    def _take(self, worker: TimedWorker, index: int, draws: Sequence[Draw]) -> int:
        record = self._records[index]
        worker.warm_up(self._num_warm_calls, self._bytes_aside(worker))  # on older values
        # No process can start while all stand still: one that works ahead is there before we write.
        if strangers := worker.worker.num_strangers():
            text = f"{strangers} processes beside the worker while it stood still"
            record.note([finding("disturbs_others", text)])
        worker.write(self._fresh, draws)
        record.meanwhile_ns.append(worker.ran_meanwhile_ns())
        spent = worker.call(len(draws))
        record.num_turns += 1
        record.num_elsewhere += worker.stops_elsewhere(self._stop_offsets)
        if record.num_elsewhere >= max(LEAST_ELSEWHERE, ELSEWHERE_SHARE * record.num_turns):
            text = "it stopped in other code than the worker's own"
            record.note([finding("loop_taken_over", text)])
        if index == 0:
            self._held_up.append(spent.waited_ns / max(spent.wall_ns, 1))
        return self._ns(spent)

    def _look(self, worker: TimedWorker, index: int, look: Look, expected: Seen) -> None:
        record = self._records[index]
        record.num_looks += 1
        results = worker.look_at(self._fresh, look)
        results.is_overwritten |= worker.mark(look, results)
        worker.free()
        if results.up_ns is not None and results.down_ns is not None:
            record.up_ms.append(results.up_ns / NS_PER_MS)
            record.down_ms.append(results.down_ns / NS_PER_MS)
        forms = (worker.forms, self._workers[0].forms)
        record.compare(self._fresh, look, results, expected, forms)
        if index == 0:
            self._shared = results.calls[0].shared
            self._measure_overheads()

    def _measure_overheads(self) -> None:
        """Measure what ways of calling take by themselves, in the same rounds as all else."""
        for way, times_ns in self._overhead_ns.items():
            if len(times_ns) < NUM_OVERHEADS:
                self._oracle.overhead(way, self._num_calls)  # warm, like counted bursts
                spent = self._oracle.overhead(way, self._num_calls)
                times_ns.append(self._ns(spent))
                self._oracle.free()

    def _draw_look(self, draws: Sequence[Draw], is_whole: bool) -> Look:
        """Draw the places to check after a burst; a whole look takes an extreme call too."""
        order = self._random.permutation(len(draws)).tolist()
        if is_whole:
            extreme = [call for call in order if draws[call].input_set >= EXTREME_SET]
            usual = [call for call in order if draws[call].input_set < EXTREME_SET]
            order = [*usual[:1], *extreme[:1], *usual[1:], *extreme[1:]]
        calls = order[:MAX_SEEN]
        reference = self._workers[0]
        spots = self._random.random(reference.num_inputs).tolist()
        places = probes.draw_places(reference.forms, self._random)
        return Look(tuple(calls), tuple(order), places, spots, is_whole)

    def _expected(self, look: Look, draws: Sequence[Draw]) -> Seen:
        numbers = tuple(range(len(look.chosen)))
        self._call_oracle([draws[call] for call in look.chosen])
        again = replace(look, chosen=numbers, order=numbers, awaits_writes=False)
        results = self._oracle.look_at(self._fresh, again)
        self._oracle.free()
        empty = self._oracle.order(ControlPage.EMPTY, self._num_calls)
        self._oracle.free()
        self._empty_ns.append(self._ns(empty))
        return results

    def _call_oracle(self, draws: Sequence[Draw]) -> None:
        """Let the oracle act as a worker does in a turn, and learn where it stops then."""
        self._oracle.warm_up(0, self._bytes_aside(self._oracle))
        self._oracle.burst(self._fresh, draws)
        self._stop_offsets = self._oracle.still_same(self._stop_offsets)

    def _bytes_aside(self, worker: TimedWorker) -> int:
        return 0 if worker.is_on_device else int(self._random.integers(MAX_BYTES_ASIDE))

    def _measurement(self) -> Measurement:
        reference = self._records[0]
        hot_ms, cold_ms = [], self._cold_ms()
        for record, worker in zip(self._records[1:], self._workers[1:], strict=True):
            t = record.comparison.t
            if record.failure is None and (t is None or t > CORRECT_AT):
                with suppress(WorkerFailureError):
                    record.note(explain(worker, self._oracle, self._fresh, self._prepared))
        self._oracle.leave()
        for index, worker in enumerate(self._workers):
            hot_ms.append(self._visit(index, _hot_ms) if worker.is_on_device else None)
            if (observed := self._visit(index, lambda worker: worker.leave())) is not None:
                record = self._records[index]
                for use in observed[: MAX_REPORTS - len(record.observed)]:
                    record.observed[use.name] = use
        for record, worker in zip(self._records[1:], self._workers[1:], strict=True):
            if num_refused := worker.worker.num_refused:
                text = f"it tried to start a process {num_refused} times while it was timed"
                record.note([finding("disturbs_others", text)])
            record.note(early_work(record.up_ms, reference.up_ms))
            record.note(late_work(record.down_ms, reference.down_ms))
            record.note(disturbance(record.meanwhile_ns))
        rounds = [self._rounds_ms(record) for record in self._records]
        for record, worker, times in zip(self._records, self._workers, rounds, strict=True):
            if times and float(low_mean(np.array(times).reshape(-1))) <= SHORTEST_MS:
                text = "its calls take no longer than a burst without calls"
                record.note([finding("physical_floor", text)])
            if times and (way := worker.way) in self._overhead_ns:
                others = zip(self._workers, rounds, strict=True)
                direct = next((own for other, own in others if other.is_direct(worker)), ())
                record.note(overhead_findings(way, times, self._overhead_ms(way), direct))
        timings = [
            WorkerTiming(
                rounds[0],
                () if record.failure else own_rounds,
                self._num_calls,
                float(np.median(self._held_up)),
                record.comparison,
                tuple(record.findings.values()),
                tuple(record.observed.values()),
                record.failure,
                hot_ms[0],
                hot,
                cold_ms[0],
                cold,
                tuple(record.samples.values()),
            )
            for record, own_rounds, hot, cold in zip(
                self._records, rounds, hot_ms, cold_ms, strict=True
            )
        ]
        return Measurement(tuple(timings), self._shared)

    def _cold_ms(self) -> list[float | None]:
        """Return the time of one call of each worker with cold caches; None on a device."""
        if self._oracle.is_on_device:
            return [None] * len(self._workers)
        numbers = range(len(self._workers))
        caches = ColdCaches(self._processors, self._fresh, self._ns)
        orders = [self._random.permutation(numbers).tolist() for _ in range(COLD_CALLS)]
        return caches.measure(orders, self._visit, self._oracle)

    def _overhead_ms(self, way: OverheadName) -> float:
        """Return the least time that a way of calling took by itself; 0 if it was not measured."""
        times_ns = self._overhead_ns[way]
        if not times_ns:
            return 0.0
        empty_ns = float(low_mean(np.array(self._empty_ns)))
        return (min(times_ns) - empty_ns) / self._num_calls / NS_PER_MS

    def _rounds_ms(self, record: WorkerRecord) -> Rounds:
        empty_ns = float(low_mean(np.array(self._empty_ns)))
        return record.rounds_ms(empty_ns, self._num_calls)


def _hot_ms(worker: TimedWorker) -> float:
    return worker.order(ControlPage.REPEAT, HOT_CALLS).wall_ns / NS_PER_MS / HOT_CALLS
