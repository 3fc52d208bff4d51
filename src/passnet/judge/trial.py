"""Judging of one graph: the reference and all candidates on it, compared, then timed together."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from passnet.dataset.suite import SuiteGraph
from passnet.errors import GraphError
from passnet.graph.device import retarget
from passnet.graph.inputs import make_inputs
from passnet.graph.numbers import storage
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.clock import Measurement, TimedWorker, TimingPlan, interleave
from passnet.judge.compare import Verdict, compare_forms, compare_values
from passnet.judge.estimate import low_mean, self_ratio, speedup
from passnet.judge.lock import device_lock
from passnet.judge.messages import OutputForm
from passnet.judge.process import WorkerFailureError, WorkerParent
from passnet.judge.status import Status
from passnet.judge.subject import Outcome, Problem, Subject, make_problem
from passnet.judge.tolerance import LEVELS, smallest_t

MAX_TEXT = 600


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How graphs are judged.

    Args:
        device: "cpu".
        seed: of the inputs.
        timing: how long to measure.
        memory_mib: memory of a worker beyond its start.
        compile_timeout_s: for loading, and for the first call.
        call_timeout_s: for every later call.
        self_tolerance: how far the reference may be from itself before a measurement is repeated.
        max_repeats: how often it is repeated before its trials are `unstable`.
    """

    device: str = "cpu"
    seed: int = 0
    timing: TimingPlan = field(default_factory=TimingPlan)
    memory_mib: int = 8192
    compile_timeout_s: float = 180.0
    call_timeout_s: float = 30.0
    self_tolerance: float = 0.1
    max_repeats: int = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """How one candidate did on one graph of a task.

    `speedup` with the bounds of its 95 % interval is None unless the status is ok. `self_ratio` is
    the reference against itself in the same rounds. `matches` maps each pass to how often it did.
    Times are kept by round and turn.
    `phases_s` says where the judge's time on this trial went.
    """

    task: str
    graph: str
    candidate: str
    status: Status
    smallest_t: int | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    reference_ms: float | None = None
    candidate_ms: float | None = None
    self_ratio: float | None = None
    error: str | None = None
    matches: dict[str, int] = field(default_factory=dict)
    reference_rounds_ms: tuple[tuple[float, float], ...] = ()
    candidate_rounds_ms: tuple[tuple[float, float], ...] = ()
    calls_per_turn: int | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    phases_s: dict[str, float] = field(default_factory=dict)


class _Stopwatch:
    """Adds up where time goes, by phase."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start


def judge_graph(
    parent: WorkerParent,
    item: SuiteGraph,
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
) -> list[Trial]:
    """One trial for each candidate on a graph, in order.

    The reference runs once for all of them. Every candidate is compared with it on two sets of
    inputs, as recorded and fresh; those that ran are then timed together with it, round by round,
    and the outputs of one more call, made like the timed ones, are compared again.
    """
    graph = retarget(item.graph, settings.device)
    watch = _Stopwatch()
    try:
        with watch.phase("inputs"):
            sets = [make_inputs(graph, "recorded", settings.seed),
                    make_inputs(graph, "fresh", settings.seed + 1)]  # fmt: skip
            problem = make_problem(graph, sets)
        with ExitStack() as stack:
            with watch.phase("reference"):
                reference = stack.enter_context(_subject(parent, problem, REFERENCE, settings))
                expected = [_outcome(reference, number) for number in range(problem.num_sets)]
            bench = _Bench(parent, item, problem, reference, expected, settings, watch, stack)
            return bench.trials(candidates)
    except (WorkerFailureError, GraphError) as cause:
        text = f"the reference failed: {cause}"[:MAX_TEXT]
        return [
            Trial(item.task, item.name, candidate.name, "reference_error", error=text)
            for candidate in candidates
        ]


def _subject(
    parent: WorkerParent, problem: Problem, candidate: Candidate, settings: JudgeSettings
) -> Subject:
    return Subject(
        parent,
        problem,
        candidate,
        settings.memory_mib,
        settings.compile_timeout_s,
        settings.call_timeout_s,
    )


def _outcome(subject: Subject, number: int) -> Outcome:
    outcome = subject.outcome(subject.run(number), number)
    if outcome.changed:
        subject.restore(number)
    return outcome


class _Bench:
    """One graph's reference and the candidates that got past comparison."""

    def __init__(
        self,
        parent: WorkerParent,
        item: SuiteGraph,
        problem: Problem,
        reference: Subject,
        expected: list[Outcome],
        settings: JudgeSettings,
        watch: _Stopwatch,
        stack: ExitStack,
    ) -> None:
        self._parent = parent
        self._item = item
        self._problem = problem
        self._reference = reference
        self._expected = expected
        self._settings = settings
        self._watch = watch
        self._stack = stack

    def trials(self, candidates: Sequence[Candidate]) -> list[Trial]:
        done: dict[int, Trial] = {}
        running: dict[int, tuple[Subject, Verdict]] = {}
        for index, candidate in enumerate(candidates):
            started = self._start(candidate)
            if isinstance(started, Trial):
                done[index] = started
            else:
                running[index] = started
        if running:
            done.update(self._timed(candidates, running))
        return [done[index] for index in range(len(candidates))]

    def _named(self, candidate: Candidate, status: Status, **fields: Any) -> Trial:
        return Trial(self._item.task, self._item.name, candidate.name, status, **fields)

    def _start(self, candidate: Candidate) -> Trial | tuple[Subject, Verdict]:
        """Load and compare a candidate: a finished trial if it failed, else what is to be timed."""
        watch = _Stopwatch()
        subject: Subject | None = None
        try:
            with watch.phase("start"):
                subject = _subject(self._parent, self._problem, candidate, self._settings)
                subject.__enter__()
            self._stack.callback(subject.__exit__)
            verdict = Verdict("ok", LEVELS[0])
            for number in range(self._problem.num_sets):
                with watch.phase("compile" if number == 0 else "run"):
                    forms = subject.run(number)
                if candidate.kind == "passes" and not any(
                    item.num_matches for item in subject.matches
                ):
                    return self._no_match(candidate, subject, watch)
                with watch.phase("compare"):
                    verdict = _worse(verdict, self._compare(subject, number, forms))
                if verdict.status != "ok":
                    break
        except WorkerFailureError as failure:
            return self._finished(candidate, subject, watch, failure.status, str(failure))
        self._add_phases(watch)
        if verdict.status != "ok":
            return self._finished(candidate, subject, watch, verdict.status, verdict.text)
        return subject, verdict

    def _add_phases(self, watch: _Stopwatch) -> None:
        for name, seconds in watch.seconds.items():
            self._watch.seconds[name] += seconds

    def _no_match(self, candidate: Candidate, subject: Subject, watch: _Stopwatch) -> Trial:
        misses = [item.miss for item in subject.matches if item.miss]
        text = (
            "no pass matched; nearest miss of " + "; of ".join(misses)
            if misses
            else ("the folder lists no pass")
        )
        return self._finished(candidate, subject, watch, "no_match", text)

    def _finished(
        self,
        candidate: Candidate,
        subject: Subject | None,
        watch: _Stopwatch,
        status: Status,
        text: str | None,
    ) -> Trial:
        if subject is not None:
            subject.worker.close()
        return self._named(
            candidate,
            status,
            error=None if text is None else text[:MAX_TEXT],
            matches=_matches(subject),
            load_s=subject.load_s if subject else None,
            phases_s=dict(watch.seconds),
        )

    def _compare(self, subject: Subject, number: int, forms: tuple[OutputForm, ...]) -> Verdict:
        """The verdict on the last call; the inputs are put back if it changed any."""
        expected = self._expected[number]
        verdict = compare_forms(forms, expected.forms)
        if verdict.status != "ok":
            return verdict
        actual = subject.outcome(forms, number)
        verdict = compare_values(forms, expected.forms, actual.outputs, expected.outputs)
        verdict = _worse(verdict, self._compare_inputs(actual, expected, number))
        if actual.changed:
            subject.restore(number)
        return verdict

    def _compare_inputs(self, actual: Outcome, expected: Outcome, number: int) -> Verdict:
        """Arguments that either side changed must end up with the same values."""
        worst: int = LEVELS[0]
        for index in sorted({*actual.changed, *expected.changed}):
            layout = self._problem.layouts[index]
            mine = self._after(actual, index, number)
            theirs = self._after(expected, index, number)
            level = smallest_t(mine, theirs, layout.dtype)
            if level is None or index not in expected.changed:
                return Verdict("ok", None, f"argument {index} is left with other values")
            worst = max(worst, level)
        return Verdict("ok", worst)

    def _after(self, outcome: Outcome, index: int, number: int) -> np.ndarray:
        if index in outcome.changed:
            return outcome.changed[index]
        layout = self._problem.layouts[index]
        count = int(np.prod(layout.shape, dtype=np.int64))
        flat = np.frombuffer(
            self._problem.content, storage(layout.dtype), count, layout.offsets[number]
        )
        return flat.reshape(layout.shape)

    def _timed(
        self, candidates: Sequence[Candidate], running: dict[int, tuple[Subject, Verdict]]
    ) -> dict[int, Trial]:
        """Trials of the candidates that ran, timed together."""
        indices = list(running)
        subjects = [self._reference, *(running[index][0] for index in indices)]
        timed = [self._timed_worker(item) for item in subjects]
        checks: dict[int, Verdict | WorkerFailureError] = {}
        try:
            with self._watch.phase("timing"):
                measured = self._measure(timed)
            with self._watch.phase("compare"):
                for place in range(1, len(timed)):
                    if place not in measured.failures:
                        checks[place] = self._check_timed(timed[place], subjects[place])
        finally:
            for item in timed:
                item.close()
        trials = {}
        for place, index in enumerate(indices, start=1):
            subject, verdict = running[index]
            failure = measured.failures.get(place)
            check = checks.get(place)
            if isinstance(check, Verdict):
                verdict = _worse(verdict, check)
            elif failure is None:
                failure = check
            trials[index] = self._trial(
                candidates[index], subject, verdict, measured, place, failure
            )
        return trials

    def _timed_worker(self, subject: Subject) -> TimedWorker:
        changes = any(item.changed for item in self._expected)
        return TimedWorker(
            subject.worker,
            self._problem.num_sets,
            self._settings.call_timeout_s,
            subject.restore if changes else None,
        )

    def _measure(self, timed: list[TimedWorker]) -> Measurement:
        with device_lock(self._settings.device):
            for _ in range(self._settings.max_repeats):
                measured = interleave(timed, self._settings.timing)
                if self._is_stable(measured):
                    break
        return measured

    def _is_stable(self, measured: Measurement) -> bool:
        ratio = self_ratio(np.array(measured.rounds[0]))
        return abs(np.log(ratio)) <= np.log1p(self._settings.self_tolerance)

    def _check_timed(self, timed: TimedWorker, subject: Subject) -> Verdict | WorkerFailureError:
        try:
            number, forms = timed.kept_call()
            return self._compare(subject, number, forms)
        except WorkerFailureError as failure:
            return failure

    def _trial(
        self,
        candidate: Candidate,
        subject: Subject,
        verdict: Verdict,
        measured: Measurement,
        place: int,
        failure: WorkerFailureError | None,
    ) -> Trial:
        shared: dict[str, Any] = {
            "matches": _matches(subject),
            "load_s": subject.load_s,
            "first_call_s": subject.first_call_s,
            "self_ratio": self_ratio(np.array(measured.rounds[0])),
            "phases_s": dict(self._watch.seconds),
        }
        if failure is not None:
            text = str(failure)[:MAX_TEXT]
            return self._named(candidate, failure.status, error=text, **shared)
        if verdict.status != "ok":
            return self._named(candidate, verdict.status, error=verdict.text, **shared)
        mine = np.array(measured.rounds[place])
        theirs = np.array(measured.rounds[0])
        shared.update(
            smallest_t=verdict.t,
            error=verdict.text,
            reference_rounds_ms=measured.rounds[0],
            candidate_rounds_ms=measured.rounds[place],
            calls_per_turn=measured.calls_per_turn,
            reference_ms=float(low_mean(theirs.reshape(-1))),
            candidate_ms=float(low_mean(mine.reshape(-1))),
        )
        if not self._is_stable(measured):
            shared["error"] = "the reference differs from itself; the machine is too busy"
            return self._named(candidate, "unstable", **shared)
        ratio = speedup(theirs, mine, self._settings.seed)
        return self._named(
            candidate,
            "ok",
            speedup=ratio.value,
            speedup_low=ratio.low,
            speedup_high=ratio.high,
            **shared,
        )


def _worse(first: Verdict, second: Verdict) -> Verdict:
    """The verdict that tells against the candidate more."""
    if first.status != "ok":
        return first
    if second.status != "ok" or first.t is None:
        return second if second.status != "ok" else first
    if second.t is None or second.t > first.t:
        return second
    return first


def _matches(subject: Subject | None) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for item in subject.matches if subject else ():
        counts[item.name] += item.num_matches
    return dict(counts)
