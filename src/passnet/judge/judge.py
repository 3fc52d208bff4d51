"""Judging of one graph: the reference and all candidates on it, compared, then timed together."""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from passnet.errors import GraphError, PassFolderError
from passnet.graph.device import retarget
from passnet.graph.inputs import make_inputs
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.check import KINDS, NUM_GRADED, CheckResult, Expected, num_written
from passnet.judge.compare import worse
from passnet.judge.findings import Finding
from passnet.judge.inspection.inspection import inspect_code
from passnet.judge.inspection.rules import RULES, RulesName
from passnet.judge.processes.device_lock import DeviceTurns
from passnet.judge.processes.loaded_worker import LoadedWorker, PreparedGraph, prepare_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.worker_process import WorkerFailureError, WorkerParent
from passnet.judge.protocol.device import kind_of
from passnet.judge.protocol.messages import Profiled
from passnet.judge.timing.clock import (
    EARLY_WORK,
    HOT_CALLS,
    LATE_WORK,
    Measurement,
    TimingPlan,
    interleave,
)
from passnet.judge.timing.estimate import low_mean, self_ratio, speedup
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet.judge.timing.measurement_findings import (
    company_findings,
    floor_findings,
    torch_findings,
)
from passnet.judge.timing.roofline import NO_ROOFLINE, Roofline, measure_roofline
from passnet.judge.timing.timed_worker import TimedWorker
from passnet.judge.trial import MAX_TEXT, JudgeSettings, Trial, with_findings
from passnet.passes.folder import inspect_folder
from passnet.score.status import Status
from passnet.suite.suite import SuiteGraph


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
    parents: ParentPool,
    item: SuiteGraph,
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
) -> list[Trial]:
    """One trial for each candidate on a graph, in order.

    The text of every pass folder is inspected first. The reference runs once for all candidates.
    Each is compared with it on several sets of inputs (`check.KINDS`); those that ran are then
    timed together with it, and looked at while they are.

    Raises:
        WorkerError: our own machinery failed.
    """
    with DeviceTurns(settings.device) as turns:
        found = {candidate.name: _inspect(candidate, settings.rules) for candidate in candidates}
        accepted = [candidate for candidate in candidates if not _is_proven(found[candidate.name])]
        judged = _judge_accepted(parents, item, accepted, settings, turns) if accepted else []
    trials = {trial.candidate: trial for trial in judged}
    for name in found.keys() - trials.keys():
        trials[name] = Trial(item.task, item.name, name, "cheat")
    return [with_findings(trials[name], findings) for name, findings in found.items()]


def problem_of(parents: ParentPool, item: SuiteGraph, settings: JudgeSettings) -> PreparedGraph:
    """A graph with its inputs, as these parents keep it or newly made.

    Raises:
        GraphError: its inputs cannot be made.
    """

    def make() -> PreparedGraph:
        graph = retarget(item.graph, kind_of(settings.device))
        kinds = enumerate(KINDS, settings.seed)
        return prepare_graph(graph, [make_inputs(graph, kind, seed) for seed, kind in kinds])

    return parents.problems.get(item.graph, settings.device, settings.seed, make)


def _inspect(candidate: Candidate, rules: RulesName) -> tuple[Finding, ...]:
    """What the code of a candidate's pass folder uses; of a folder that is broken, nothing."""
    if candidate.passes is None:
        return ()
    try:
        return tuple(inspect_code(inspect_folder(Path(candidate.passes)), RULES[rules]))
    except PassFolderError:
        return ()  # its worker will say what is wrong with it


def _is_proven(findings: Sequence[Finding]) -> bool:
    return any(item.weight == "reject" for item in findings)


def _judge_accepted(
    parents: ParentPool,
    item: SuiteGraph,
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
    turns: DeviceTurns,
) -> list[Trial]:
    watch = _Stopwatch()
    try:
        with watch.phase("inputs"):
            problem = problem_of(parents, item, settings)
        with ExitStack() as stack:
            with watch.phase("reference"):
                reference = stack.enter_context(
                    _subject(parents.reference(), problem, REFERENCE, settings)
                )
                expected = Expected(problem, reference)
            bench = _Bench(
                parents, item, problem, reference, expected, settings, turns, watch, stack
            )
            return bench.trials(candidates)
    except (WorkerFailureError, GraphError) as cause:
        text = f"the reference failed: {cause}"[:MAX_TEXT]
        return [
            Trial(item.task, item.name, candidate.name, "reference_error", error=text)
            for candidate in candidates
        ]


def _subject(
    parent: WorkerParent, problem: PreparedGraph, candidate: Candidate, settings: JudgeSettings
) -> LoadedWorker:
    return LoadedWorker(
        parent,
        problem,
        candidate,
        settings.limits,
        settings.compile_timeout_s,
        settings.call_timeout_s,
        settings.device,
    )


class _Bench:
    """One graph's reference and the candidates that got past comparison."""

    def __init__(
        self,
        parents: ParentPool,
        item: SuiteGraph,
        problem: PreparedGraph,
        reference: LoadedWorker,
        expected: Expected,
        settings: JudgeSettings,
        turns: DeviceTurns,
        watch: _Stopwatch,
        stack: ExitStack,
    ) -> None:
        self._parents = parents
        self._item = item
        self._problem = problem
        self._reference = reference
        self._expected = expected
        self._settings = settings
        self._turns = turns
        self._watch = watch
        self._stack = stack

    def trials(self, candidates: Sequence[Candidate]) -> list[Trial]:
        done: dict[int, Trial] = {}
        running: dict[int, tuple[LoadedWorker, CheckResult]] = {}
        for index, candidate in enumerate(candidates):
            started = self._start(candidate)
            if isinstance(started, Trial):
                done[index] = started
            else:
                running[index] = started
        if self._settings.timing is None:
            done.update(
                {index: self._compared(candidates[index], *item) for index, item in running.items()}
            )
        elif running:
            done.update(self._timed(candidates, running, self._settings.timing))
        return [done[index] for index in range(len(candidates))]

    def _named(self, candidate: Candidate, status: Status, **fields: Any) -> Trial:
        sandbox = self._parents.sandbox.name if candidate.root else "none"
        return Trial(
            self._item.task, self._item.name, candidate.name, status, sandbox=sandbox, **fields
        )

    def _start(self, candidate: Candidate) -> Trial | tuple[LoadedWorker, CheckResult]:
        """Load and compare a candidate: a finished trial if it failed, else what is to be timed."""
        watch = _Stopwatch()
        subject: LoadedWorker | None = None
        try:
            with watch.phase("start"):
                parent = self._parents.of(candidate)
                subject = _subject(parent, self._problem, candidate, self._settings)
                subject.__enter__()
            self._stack.callback(subject.__exit__)
            with watch.phase("compile"):
                subject.run(0)
                subject.restore(0)
            if candidate.kind == "passes" and not any(item.num_matches for item in subject.matches):
                return self._no_match(candidate, subject, watch)
            with watch.phase("compare"):
                checked = self._expected.check(subject)
        except WorkerFailureError as failure:
            return self._finished(candidate, subject, watch, failure.status, str(failure))
        self._add_phases(watch)
        verdict = checked.verdict
        if verdict.status != "ok":
            return self._finished(candidate, subject, watch, verdict.status, verdict.text)
        return subject, checked

    def _add_phases(self, watch: _Stopwatch) -> None:
        for name, seconds in watch.seconds.items():
            self._watch.seconds[name] += seconds

    def _no_match(self, candidate: Candidate, subject: LoadedWorker, watch: _Stopwatch) -> Trial:
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
        subject: LoadedWorker | None,
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

    def _compared(self, candidate: Candidate, subject: LoadedWorker, checked: CheckResult) -> Trial:
        """The trial of a candidate that ran and is not timed."""
        return self._named(
            candidate,
            "ok",
            smallest_t=checked.verdict.t,
            error=checked.verdict.text,
            matches=_matches(subject),
            findings=checked.findings,
        )

    def _timed(
        self,
        candidates: Sequence[Candidate],
        running: dict[int, tuple[LoadedWorker, CheckResult]],
        plan: TimingPlan,
    ) -> dict[int, Trial]:
        """Trials of the candidates that ran, timed together."""
        indices = list(running)
        subjects = [self._reference, *(running[index][0] for index in indices)]
        timeout_s = self._settings.call_timeout_s
        timed = [TimedWorker(item, timeout_s) for item in subjects]
        try:
            with self._turns.alone(), self._watch.phase("timing"):
                measured = self._measure(timed, plan)
                profiles = self._profiles(subjects)
                num_bytes = num_written(self._reference.forms, measured.shared)
                floor = self._floor(num_bytes)
        finally:
            for item in timed:
                item.close()
        self._watch.seconds["waiting"] = self._turns.waited_s
        usual = self._reference.worker.num_threads()
        trials = {}
        for place, index in enumerate(indices, start=1):
            subject, checked = running[index]
            findings = (
                *checked.findings,
                *measured.findings[place],
                *torch_findings(measured.observed[place], self._settings.rules),
                *company_findings(subject, usual),
                *floor_findings(floor, measured.rounds[place], measured.rounds[0]),
            )
            trial = self._trial(candidates[index], subject, checked, measured, place)
            trial = replace(trial, profile=profiles[place], reference_profile=profiles[0])
            trials[index] = with_findings(trial, findings)
        return trials

    def _profiles(self, subjects: Sequence[LoadedWorker]) -> list[Profiled | None]:
        if kind_of(self._settings.device) == "cpu":
            return [None for _ in subjects]
        return [item.profile(HOT_CALLS) for item in subjects]

    def _floor(self, num_bytes: int) -> Roofline:
        if kind_of(self._settings.device) != "cpu":
            return NO_ROOFLINE
        return measure_roofline(num_bytes, self._expected.flops, self._parents.num_threads)

    def _measure(self, timed: list[TimedWorker], plan: TimingPlan) -> Measurement:
        random = np.random.default_rng(secrets.randbits(128))
        graded = self._problem.input_sets[:NUM_GRADED]
        fresh = FreshInputs(self._problem.tensors, graded, random)
        for _ in range(self._settings.max_repeats):
            measured = interleave(timed, plan, fresh, random)
            found = {item.name for findings in measured.findings for item in findings}
            if self._is_stable(measured) and not found & {EARLY_WORK, LATE_WORK}:
                break  # a busy machine can look like either, but not again and again
        return measured

    def _is_stable(self, measured: Measurement) -> bool:
        """Whether the reference agrees with itself and was hardly held up. The candidates' own
        waiting does not count: who waits on purpose is slow, and no less judged.
        """
        tolerance = self._settings.self_tolerance
        ratio = self_ratio(np.array(measured.rounds[0]))
        return abs(np.log(ratio)) <= np.log1p(tolerance) and measured.held_up <= tolerance

    def _trial(
        self,
        candidate: Candidate,
        subject: LoadedWorker,
        checked: CheckResult,
        measured: Measurement,
        place: int,
    ) -> Trial:
        shared: dict[str, Any] = {
            "matches": _matches(subject),
            "load_s": subject.load_s,
            "first_call_s": subject.first_call_s,
            "self_ratio": self_ratio(np.array(measured.rounds[0])),
            "held_up": measured.held_up,
            "phases_s": dict(self._watch.seconds),
            "relative_error": checked.accuracy.error if checked.accuracy else None,
            "eager_error": checked.accuracy.eager_error if checked.accuracy else None,
        }
        failure = measured.failures.get(place)
        if failure is not None:
            text = str(failure)[:MAX_TEXT]
            return self._named(candidate, failure.status, error=text, **shared)
        verdict = worse(checked.verdict, measured.verdicts[place])
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
            reference_hot_ms=measured.hot_ms[0],
            candidate_hot_ms=measured.hot_ms[place],
        )
        if not self._is_stable(measured):
            shared["error"] = (
                "the reference differs from itself, or waits for a processor; the machine is too "
                "busy"
            )
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


def _matches(subject: LoadedWorker | None) -> dict[str, int]:
    counts: dict[str, int] = defaultdict(int)
    for item in subject.matches if subject else ():
        counts[item.name] += item.num_matches
    return dict(counts)
