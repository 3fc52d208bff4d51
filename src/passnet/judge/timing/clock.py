"""The judge's clock: rounds in which all workers are called on the same fresh inputs.

Rounds visit the workers forwards and backwards (ABBA), so that a drift of the machine falls on all
alike, and shows in the reference against itself. What is seen of a worker's outputs in a turn is
compared with what is seen of the reference's in the same turn. The cost of an empty bracket is
measured on the reference's worker, which no candidate can slow down, and taken off for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from passnet.judge.compare import Comparison, compare_values, worse
from passnet.judge.findings import Finding
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import Observed, OutputForm
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


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How long to measure.

    Args:
        seconds: time to spend on calls, for each worker.
        min_rounds: rounds to make in any case.
        max_rounds: rounds after which the measurement ends.
        burst_ms: time that a worker is called for in one round.
        min_calls: counted calls of a worker in one round at least.
        max_calls: and at most.
        slow_ms: of calls of this length and more there are fewer, see `SLOW_ROUNDS`.
        audit_share: share of turns in which all outputs of one call are read, and in another call
            the torch ops of replacements observed. One more turn, after the last that counts, is
            audited in any case, and outputs are held in it: held memory would make later calls
            slower or faster.
    """

    seconds: float = 0.4
    min_rounds: int = 6
    max_rounds: int = 16
    burst_ms: float = 2.0
    min_calls: int = 3
    max_calls: int = 50
    slow_ms: float = 20.0
    audit_share: float = 0.02


T = TypeVar("T")

Rounds: TypeAlias = tuple[tuple[float, float], ...]
"""The times of a worker's two turns in every round, in milliseconds."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of several workers, round by round.

    `rounds[i]` holds for worker i the times of its two turns in every round, in milliseconds: each
    the median of that turn's calls. `verdicts[i]` compares what was seen of its outputs with the
    reference's, `findings[i]` is what its audited calls prove, `observed[i]` what torch ops its
    replacements used. `held_up` is the share of the time that the reference and the judge waited
    for a processor, at `HELD_UP_QUANTILE` of the reference's turns. `shared` says which outputs of
    the reference share memory (`probe.shared`).
    `failures` maps workers that failed on the way to how; their times are empty. `hot_ms[i]` is the
    time of one of many calls in a row, on a device; None elsewhere.
    """

    rounds: tuple[Rounds, ...]
    calls_per_turn: int
    held_up: float
    verdicts: tuple[Comparison, ...]
    findings: tuple[tuple[Finding, ...], ...]
    observed: tuple[tuple[Observed, ...], ...]
    shared: frozenset[SharedPair]
    failures: Mapping[int, WorkerFailureError]
    hot_ms: tuple[float | None, ...]


def interleave(
    workers: Sequence[TimedWorker],
    plan: TimingPlan,
    fresh: FreshInputs,
    random: np.random.Generator,
) -> Measurement:
    """Rounds in which every worker has two turns: forwards, then backwards (ABBA).

    The order is rotated from round to round, so that each worker is as often next to itself, and
    next to each other, as any: what runs before a turn has left its traces in the shared cache.

    Args:
        workers: the reference first.
        plan: how long.
        fresh: the inputs of the calls.
        random: decides where to look; nobody outside may know its state.

    Raises:
        WorkerFailureError: the first worker, the reference, failed.
    """
    samples: list[list[tuple[float, float]]] = [[] for _ in workers]
    verdicts = [Comparison("ok", LEVELS[0]) for _ in workers]
    findings: list[dict[str, Finding]] = [{} for _ in workers]
    observed: list[dict[str, Observed]] = [{} for _ in workers]
    warm_ms: list[list[float]] = [[] for _ in workers]
    delivery_ms: list[list[float]] = [[] for _ in workers]
    held_up: list[float] = []
    failures: dict[int, WorkerFailureError] = {}

    def visit(index: int, action: Callable[[TimedWorker], T]) -> T | None:
        try:
            return None if index in failures else action(workers[index])
        except WorkerFailureError as failure:
            if index == 0:
                raise
            failures[index] = failure
            return None

    def turn(order: Sequence[int], last: bool = False) -> dict[int, TurnResult]:
        audited = last or random.random() < plan.audit_share
        planned = _plan_calls(calls, fresh, random, audited, last)
        spots = random.random(workers[0].num_inputs).tolist()
        drawn = Turn(planned, draw_places(workers[0].forms, random), spots)
        results = {index: visit(index, lambda item: item.take(drawn, fresh)) for index in order}
        there = {index: result for index, result in results.items() if result is not None}
        for index, result in there.items():
            verdict = _compare(drawn, result, there[0], workers[index].forms, workers[0].forms)
            verdicts[index] = worse(verdicts[index], verdict)
            findings[index].update({item.name: item for item in _findings(result.audit)})
            observed[index].update({item.name: item for item in result.observed})
            warm_ms[index] += result.warm_ms
            delivery_ms[index] += result.delivery_ms
        held_up.append(there[0].held_up)
        return there

    for index in range(len(workers)):
        visit(index, lambda item: item.look(fresh))
    empty_ms = workers[0].empty_bracket_ms()
    for item in workers:
        item.empty_ms = empty_ms
    slowest = max(item.typical_ms for item in workers)
    fitting = int(plan.burst_ms / max(slowest, SHORTEST_MS))
    min_rounds, min_calls = plan.min_rounds, plan.min_calls
    if slowest >= plan.slow_ms:
        min_rounds, min_calls = min(min_rounds, SLOW_ROUNDS), min(min_calls, SLOW_CALLS)
    calls = max(min_calls, min(plan.max_calls, fitting))
    deadline = time.monotonic() + plan.seconds * len(workers)
    for number in range(plan.max_rounds):
        if number >= min_rounds and time.monotonic() > deadline:
            break
        start = number % len(workers)
        order = [*range(start, len(workers)), *range(start)]
        there = turn(order)
        back = turn(order[::-1])
        for index in there.keys() & back.keys():
            samples[index].append((there[index].ms, back[index].ms))
    final = turn(range(len(workers)), last=True)[0].audit
    for index in range(1, len(workers)):
        found = _early_work(warm_ms[index], warm_ms[0])
        found += _late_work(delivery_ms[index], delivery_ms[0])
        findings[index].update({item.name: item for item in found})
    hot_ms = [
        visit(index, lambda worker: worker.burst_ms(HOT_CALLS)) if item.is_on_device else None
        for index, item in enumerate(workers)
    ]
    for index in failures:
        samples[index].clear()
    return Measurement(
        tuple(tuple(item) for item in samples),
        calls,
        float(np.quantile(held_up, HELD_UP_QUANTILE)),
        tuple(verdicts),
        tuple(tuple(item.values()) for item in findings),
        tuple(tuple(item.values()) for item in observed),
        final.shared if final else frozenset(),
        failures,
        tuple(hot_ms),
    )


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
        last = next(place for place, call in enumerate(planned) if call.kind != "timed")
        planned.insert(int(random.integers(1, last + 1)), PlannedCall(fresh.draw(), "observed"))
    return planned


def _compare(
    turn: Turn,
    mine: TurnResult,
    theirs: TurnResult,
    forms: Sequence[OutputForm],
    reference_forms: Sequence[OutputForm],
) -> Comparison:
    """What was seen of a worker's outputs in a turn against the reference's."""
    verdict = Comparison("ok", LEVELS[0])
    for actual, expected in zip(mine.seen, theirs.seen, strict=True):
        verdict = worse(verdict, compare_places(turn.places, actual, expected))
    for index in sorted(mine.changed - theirs.changed):
        text = f"argument {index} is left with other values by a timed call"
        verdict = worse(verdict, Comparison("ok", None, text))
    if mine.audit is None or theirs.audit is None or mine is theirs:
        return verdict
    whole = compare_values(forms, reference_forms, mine.audit.outputs, theirs.audit.outputs)
    verdict = worse(verdict, whole)
    for (one, index), (other, number) in sorted(mine.audit.shared ^ theirs.audit.shared):
        more = ((one, index), (other, number)) in mine.audit.shared
        does = "share memory" if more else "share no memory"
        text = f"{one} {index} and {other} {number} {does}, unlike in the reference"
        verdict = worse(verdict, Comparison("ok", None, text))
    return verdict


def _early_work(mine_ms: Sequence[float], theirs_ms: Sequence[float]) -> list[Finding]:
    """Whether a worker does more before its calls than read its inputs, as the reference does."""
    longer = _longer(mine_ms, theirs_ms, 0.0, EARLY_RATIO, EARLY_MS)
    if longer is None:
        return []
    mine, theirs = longer
    text = (
        f"at least {mine * 1e3:.1f} us between the writing of the inputs and the call, "
        f"the reference most often takes {theirs * 1e3:.1f} us to read them"
    )
    return [Finding("reject", EARLY_WORK, text)]


def _late_work(mine_ms: Sequence[float], theirs_ms: Sequence[float]) -> list[Finding]:
    """Whether a worker does more after its calls than deliver outputs, as the reference does."""
    longer = _longer(mine_ms, theirs_ms, LATE_SHARE, LATE_RATIO, LATE_MS)
    if longer is None:
        return []
    mine, theirs = longer
    text = (
        f"most often more than {mine * 1e3:.1f} us to deliver the outputs of a call, the reference "
        f"takes {theirs * 1e3:.1f} us for the same bytes"
    )
    return [Finding("reject", LATE_WORK, text)]


def _longer(
    mine_ms: Sequence[float],
    theirs_ms: Sequence[float],
    share: float,
    ratio: float,
    slack_ms: float,
) -> tuple[float, float] | None:
    """The quantile `share` of a worker's times and the reference's median, where the first is more
    than `ratio` times the second and `slack_ms`; None where it is not, or too few times tell.
    """
    if len(mine_ms) < EARLY_READS or not theirs_ms:
        return None
    mine, theirs = float(np.quantile(mine_ms, share)), float(np.median(theirs_ms))
    return (mine, theirs) if mine > ratio * theirs + slack_ms else None


def _findings(audit: Audit | None) -> list[Finding]:
    """What an audited call proves."""
    if audit is None:
        return []
    found = []
    if audit.written_late:
        text = f"an output changed in the {LATE_WAIT_S * 1e3:g} ms after the call had ended"
        found.append(Finding("reject", "late_write", text))
    if audit.overwritten:
        text = "an output that was still held changed when the graph was called again"
        found.append(Finding("reject", "static_buffer", text))
    return found
