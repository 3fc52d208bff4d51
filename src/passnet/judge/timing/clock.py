"""The judge's clock: rounds in which all workers are called on the same fresh inputs.

Rounds visit the workers forwards and backwards (ABBA), so that a drift of the machine falls on all
alike, and shows in the reference against itself. What is seen of a worker's outputs in a turn is
compared with what is seen of the reference's in the same turn. The cost of an empty bracket is
measured on the reference's worker, which no candidate can slow down, and taken off for all.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

import numpy as np

from passnet.judge.compare import Comparison, compare_values, worse
from passnet.judge.findings import Finding, finding
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import Observed, OutputForm
from passnet.judge.settings import TimingPlan
from passnet.judge.timing.estimate import self_ratio
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet.judge.timing.probes import SharedPair, compare_places, draw_places
from passnet.judge.timing.timed_worker import (
    LATE_WAIT_S,
    SHORTEST_MS,
    Audit,
    PlannedCall,
    TimedWorker,
    Turn,
    TurnResult,
)
from passnet.score.tolerance import LEVELS

EARLY_WORK = "early_work"
EARLY_RATIO = 2.0
EARLY_MS = 0.01
EARLY_READS = 20
"""A worker works on its inputs if in so many readings of them even the fastest takes longer than
this many times the reference's median, and ten microseconds. Noise makes some readings slow, not
all of them."""

LATE_WORK = "late_work"
LATE_RATIO = 1.25
LATE_MS = 0.005
LATE_SHARE = 0.1
"""On a device, outputs are delivered after the call. A worker has put work off until then if
even the fastest tenth of its deliveries takes longer than this many times the reference's median,
and five microseconds. Chosen, not measured: no GPU was at hand."""

SLOW_ROUNDS = 4
SLOW_CALLS = 2
"""Rounds, and counted calls in one, that are enough where a call is slow. What disturbs it lasts
no longer for it, so that fewer calls tell as much; and with more, a graph of 0.2 s a call took a
minute of a machine on which nobody else may work."""

HELD_UP_QUANTILE = 0.75
"""How far the reference was held up in a measurement is taken at this quantile of its turns. The
fastest fifth of turns makes the estimate (`estimate.LOW_SHARE`); where three quarters are
undisturbed, every worker has many more than that."""

HOT_CALLS = 20
"""Calls in a row, on the same inputs, of which the time of one is taken on a device."""

STALE_SHARE = 0.125
"""Share of calls whose inputs are replaced at the last moment, after the worker has read them. They
do not count, as they find their inputs in another core's cache."""


T = TypeVar("T")

Rounds: TypeAlias = tuple[tuple[float, float], ...]
"""The times of a worker's two turns in every round, in milliseconds; each is the median of its
turn's calls."""


@dataclass(frozen=True, slots=True)
class WorkerTiming:
    """What a measurement shows of one worker, beside the reference's."""

    reference_rounds_ms: Rounds
    """Times of the reference."""

    rounds_ms: Rounds
    """Times of the worker; none where it failed."""

    calls_per_turn: int
    """Counted calls behind each time."""

    held_up: float
    """Share of the time that the reference and the judge waited for a processor, at
    `HELD_UP_QUANTILE` of the reference's turns."""

    comparison: Comparison
    """What was seen of the worker's outputs and arguments, compared with the reference's."""

    findings: tuple[Finding, ...]
    """What its calls prove."""

    observed: tuple[Observed, ...]
    """What torch ops its replacements used in observed calls."""

    failure: WorkerFailureError | None
    """How it failed on the way."""

    reference_hot_ms: float | None
    """On a device, the time of one of many calls of the reference in a row; None elsewhere."""

    hot_ms: float | None
    """The same of the worker."""

    def is_steady(self, tolerance: float) -> bool:
        """Whether the reference agrees with itself and was hardly held up. The worker's own waiting
        does not count: who waits on purpose is slow, and no less judged.
        """
        ratio = self_ratio(np.array(self.reference_rounds_ms))
        return abs(np.log(ratio)) <= np.log1p(tolerance) and self.held_up <= tolerance


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured of several workers, the reference first.

    `shared` says which outputs of the reference share memory (`probes.shared`).
    """

    timings: tuple[WorkerTiming, ...]
    shared: frozenset[SharedPair]

    @property
    def needs_repeat(self) -> bool:
        """Whether something was found that a busy machine can look like, though not again and
        again.
        """
        names = {finding.name for timing in self.timings for finding in timing.findings}
        return bool(names & {EARLY_WORK, LATE_WORK})


@dataclass(slots=True)
class _WorkerRecord:
    """What is known of one worker so far."""

    comparison: Comparison = Comparison("ok", LEVELS[0])
    samples: list[tuple[float, float]] = field(default_factory=list)
    findings: dict[str, Finding] = field(default_factory=dict)
    observed: dict[str, Observed] = field(default_factory=dict)
    warm_ms: list[float] = field(default_factory=list)
    delivery_ms: list[float] = field(default_factory=list)
    failure: WorkerFailureError | None = None

    def note(self, findings: Sequence[Finding]) -> None:
        """Keep the last finding of every name."""
        self.findings.update({finding.name: finding for finding in findings})


def interleave(
    workers: Sequence[TimedWorker],
    plan: TimingPlan,
    fresh: FreshInputs,
    random: np.random.Generator,
) -> Measurement:
    """Rounds in which every worker has two turns: forwards, then backwards (ABBA).

    The order is rotated from round to round, so that each worker is as often next to itself, and
    next to each other, as any: what runs before a turn has left its traces in the shared cache.
    The reference comes first; nobody outside may know the state of `random`, which decides where to
    look.

    Raises:
        WorkerFailureError: the first worker, the reference, failed.
    """
    records = [_WorkerRecord() for _ in workers]
    rounds = _Interleaving(workers, plan, fresh, random, records, plan.min_calls)
    min_rounds = rounds.warm_up()
    deadline = time.monotonic() + plan.seconds * len(workers)
    for number in range(plan.max_rounds):
        if number >= min_rounds and time.monotonic() > deadline:
            break
        start = number % len(workers)
        order = [*range(start, len(workers)), *range(start)]
        forwards, backwards = rounds.turn(order), rounds.turn(order[::-1])
        for index in forwards.keys() & backwards.keys():
            times = (forwards[index].ms, backwards[index].ms)
            records[index].samples.append(times)
    return rounds.finish()


@dataclass(slots=True)
class _Interleaving:
    """The turns of some workers, and what they have shown."""

    _workers: Sequence[TimedWorker]
    _plan: TimingPlan
    _fresh: FreshInputs
    _random: np.random.Generator
    _records: Sequence[_WorkerRecord]
    _num_calls: int
    _held_up: list[float] = field(default_factory=list)

    def _visit(self, index: int, action: Callable[[TimedWorker], T]) -> T | None:
        """What an action on a worker gives; None where it fails, or has failed before."""
        record = self._records[index]
        try:
            return None if record.failure else action(self._workers[index])
        except WorkerFailureError as failure:
            if index == 0:
                raise
            record.failure = failure
            return None

    def warm_up(self) -> int:
        """Warm all workers up, decide how many calls make a turn, and how many rounds there are at
        least.
        """
        plan, workers = self._plan, self._workers
        for index in range(len(workers)):
            self._visit(index, lambda worker: worker.warm_up(self._fresh))
        empty_ms = workers[0].empty_bracket_ms()
        for worker in workers:
            worker.empty_ms = empty_ms
        slowest_ms = max(worker.typical_ms for worker in workers)
        fitting = int(plan.burst_ms / max(slowest_ms, SHORTEST_MS))
        min_rounds, min_calls = plan.min_rounds, plan.min_calls
        if slowest_ms >= plan.slow_ms:
            min_rounds, min_calls = min(min_rounds, SLOW_ROUNDS), min(min_calls, SLOW_CALLS)
        self._num_calls = max(min_calls, min(plan.max_calls, fitting))
        return min_rounds

    def turn(self, order: Sequence[int], is_last: bool = False) -> dict[int, TurnResult]:
        """One turn of each worker on the same inputs; the results of those that did not fail."""
        audited = is_last or self._random.random() < self._plan.audit_share
        calls = _plan_calls(self._num_calls, self._fresh, self._random, audited, is_last)
        spots = self._random.random(self._workers[0].num_inputs).tolist()
        forms = self._workers[0].forms
        turn = Turn(calls, draw_places(forms, self._random), spots)
        results = {
            index: result
            for index in order
            if (result := self._visit(index, lambda worker: worker.take(turn, self._fresh)))
        }
        for index, result in results.items():
            record = self._records[index]
            comparison = _compare(turn, result, results[0], self._workers[index].forms, forms)
            record.comparison = worse(record.comparison, comparison)
            record.note(_audit_findings(result.audit))
            record.observed.update({use.name: use for use in result.observed})
            record.warm_ms += result.warm_ms
            record.delivery_ms += result.delivery_ms
        self._held_up.append(results[0].held_up)
        return results

    def finish(self) -> Measurement:
        """One more turn, which is audited and does not count, and what all turns have shown."""
        audit = self.turn(range(len(self._workers)), is_last=True)[0].audit
        reference = self._records[0]
        hot_ms = [
            self._visit(index, lambda worker: worker.burst_ms(HOT_CALLS))
            if worker.is_on_device
            else None
            for index, worker in enumerate(self._workers)
        ]
        for record in self._records[1:]:
            findings = _early_work(record.warm_ms, reference.warm_ms)
            findings += _late_work(record.delivery_ms, reference.delivery_ms)
            record.note(findings)
        held_up = float(np.quantile(self._held_up, HELD_UP_QUANTILE))
        timings = [
            WorkerTiming(
                tuple(reference.samples),
                () if record.failure else tuple(record.samples),
                self._num_calls,
                held_up,
                record.comparison,
                tuple(record.findings.values()),
                tuple(record.observed.values()),
                record.failure,
                hot_ms[0],
                hot,
            )
            for record, hot in zip(self._records, hot_ms, strict=True)
        ]
        return Measurement(tuple(timings), audit.shared if audit else frozenset())


def _plan_calls(
    num_calls: int, fresh: FreshInputs, random: np.random.Generator, audited: bool, held: bool
) -> list[PlannedCall]:
    """The calls of a turn: one that does not count, those that do, and at random places between
    them some whose inputs are replaced at the last moment and, if audited, one that is observed.
    """
    planned = [PlannedCall(fresh.draw()) for _ in range(num_calls + 1)]
    if audited:
        number = int(random.integers(1, num_calls))
        planned[number] = PlannedCall(fresh.draw(), "held" if held else "audited")
    extra = [
        PlannedCall(fresh.draw(), stale=fresh.draw())
        for _ in range(random.binomial(num_calls, STALE_SHARE))
    ]
    for call in extra:
        planned.insert(int(random.integers(1, len(planned) + 1)), call)
    if audited:
        # Before the audited call: what comes after it must not know that it is looked at.
        last = next(position for position, call in enumerate(planned) if call.kind != "timed")
        planned.insert(int(random.integers(1, last + 1)), PlannedCall(fresh.draw(), "observed"))
    return planned


def _compare(
    turn: Turn,
    candidate: TurnResult,
    reference: TurnResult,
    forms: Sequence[OutputForm],
    reference_forms: Sequence[OutputForm],
) -> Comparison:
    """What was seen of a worker's outputs in a turn against the reference's."""
    comparison = Comparison("ok", LEVELS[0])
    for actual, expected in zip(candidate.probed, reference.probed, strict=True):
        comparison = worse(comparison, compare_places(turn.probes, actual, expected))
    for index in sorted(candidate.changed - reference.changed):
        text = f"argument {index} is left with other values by a timed call"
        comparison = worse(comparison, Comparison("ok", None, text))
    if candidate.audit is None or reference.audit is None or candidate is reference:
        return comparison
    whole = compare_values(forms, reference_forms, candidate.audit.outputs, reference.audit.outputs)
    comparison = worse(comparison, whole)
    for pair in sorted(candidate.audit.shared ^ reference.audit.shared):
        (first, index), (second, number) = pair
        does = "share memory" if pair in candidate.audit.shared else "share no memory"
        text = f"{first} {index} and {second} {number} {does}, unlike in the reference"
        comparison = worse(comparison, Comparison("ok", None, text))
    return comparison


def _early_work(warm_ms: Sequence[float], reference_ms: Sequence[float]) -> list[Finding]:
    """Whether a worker does more before its calls than read its inputs, as the reference does."""
    text = (
        "at least {:.1f} us between the writing of the inputs and the call, the reference most "
        "often takes {:.1f} us to read them"
    )
    return _longer(EARLY_WORK, text, warm_ms, reference_ms, (0.0, EARLY_RATIO, EARLY_MS))


def _late_work(delivery_ms: Sequence[float], reference_ms: Sequence[float]) -> list[Finding]:
    """Whether a worker does more after its calls than deliver outputs, as the reference does."""
    text = (
        "most often more than {:.1f} us to deliver the outputs of a call, the reference takes "
        "{:.1f} us for the same bytes"
    )
    return _longer(LATE_WORK, text, delivery_ms, reference_ms, (LATE_SHARE, LATE_RATIO, LATE_MS))


def _longer(
    name: str,
    text: str,
    times_ms: Sequence[float],
    reference_ms: Sequence[float],
    limits: tuple[float, float, float],
) -> list[Finding]:
    """A finding where the quantile `share` of a worker's times is more than `ratio` times the
    reference's median and `slack_ms`; none where too few times tell.
    """
    share, ratio, slack_ms = limits
    if len(times_ms) < EARLY_READS or not reference_ms:
        return []
    quantile_ms, typical_ms = float(np.quantile(times_ms, share)), float(np.median(reference_ms))
    if quantile_ms <= ratio * typical_ms + slack_ms:
        return []
    return [finding(name, text.format(quantile_ms * 1e3, typical_ms * 1e3))]


def _audit_findings(audit: Audit | None) -> list[Finding]:
    """What an audited call proves."""
    if audit is None:
        return []
    findings = []
    if audit.written_late:
        text = f"an output changed in the {LATE_WAIT_S * 1e3:g} ms after the call had ended"
        findings.append(finding("late_write", text))
    if audit.overwritten:
        text = "an output that was still held changed when the graph was called again"
        findings.append(finding("static_buffer", text))
    return findings
