"""Judge one graph: compare the reference and all candidates, then time them together."""

import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from passnet.errors import GraphError, InputError, WorkerError, names_exhaustion
from passnet.graph.spec import retarget
from passnet.graph.values.inputs import InputValue, integer_pools, make_inputs, varies
from passnet.graph.values.structured import make_structured
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.fenced import fenced, is_worth_fencing
from passnet.judge.inspection.inspected_folders import InspectedFolders
from passnet.judge.processes.device_lock import DeviceTurns
from passnet.judge.processes.loaded_worker import (
    Float64Result,
    LoadedWorker,
    PreparedGraph,
    prepare_graph,
)
from passnet.judge.processes.machine_rates import known_rates
from passnet.judge.processes.parent_pool import ParentPool, worker_library
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.device import kind_of
from passnet.judge.protocol.messages import Profiled
from passnet.judge.score.status import Status
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.task import TaskGraph
from passnet.judge.timing import measurement_findings
from passnet.judge.timing.clock import HOT_CALLS, interleave
from passnet.judge.timing.estimate import low_mean
from passnet.judge.timing.fresh_inputs import EXTREME_SET, FRESH_SET, POOL_SPARE, Draw, FreshInputs
from passnet.judge.timing.measurement import Measurement, WorkerTiming
from passnet.judge.timing.timed_worker import TimedWorker
from passnet.judge.trial import Trial
from passnet.judge.verdict.check import (
    FRESH,
    KINDS,
    RECORDED,
    CheckResult,
    Expected,
    num_written,
)
from passnet.judge.verdict.findings import Finding, finding, forbids_running
from passnet.judge.verdict.precision import Accuracy, precision_findings, worst_accuracy
from passnet.judge.verdict.verdict import Evidence, decide

LARGE_BYTES = 2**23
"""Arguments of two sets from which there is one set of structured inputs only."""
MAX_TIMED_HARD = 2
"""Sets of extreme and of structured inputs that are timed, at most."""


def judge_graph(
    parents: ParentPool,
    graph: TaskGraph,
    candidates: Sequence[Candidate],
    settings: JudgeSettings,
    inspected: InspectedFolders | None = None,
    held_out: Mapping[str, Sequence[Finding]] | None = None,
    reference: Candidate = REFERENCE,
) -> list[Trial]:
    """Return one trial for each candidate on a graph, in order.

    A candidate whose text alone proves a cheat is not run. The reference runs once for all. Each
    candidate is compared with it on several sets of inputs (`check.KINDS`). Those that passed are
    then timed together with it, and checked meanwhile. `inspected` are the pass folders that the
    same run inspected before; `held_out` are findings from held-out shapes, by candidate. Outputs
    are always compared with the graph's; `reference` is what is timed. Raises WorkerError if our
    own machinery failed.
    """
    if settings.rules == "strict" and any(each.residual == "inlined" for each in candidates):
        raise InputError(
            "strict rules cannot see the torch ops of a replacement that is inlined; judge it "
            "with @inductor in the place of @inlined"
        )
    inspected = inspected or InspectedFolders(settings.rules)
    findings = {
        candidate.name: (*(held_out or {}).get(candidate.name, ()), *inspected.findings(candidate))
        for candidate in candidates
    }
    evidence = {name: Evidence(graph.task, graph.name, name) for name in findings}
    if settings.input_seed is None:
        settings = replace(settings, input_seed=secrets.randbits(63))
    runnable = []
    for candidate in candidates:
        if failure := inspected.failure(candidate):
            broken = replace(evidence[candidate.name], failure=("compile_error", failure))
            evidence[candidate.name] = broken
        elif not forbids_running(findings[candidate.name]):
            runnable.append(candidate)
    if runnable:
        with DeviceTurns(settings.device) as turns:
            evidence |= confirmed_evidence(
                lambda some: _TrialSession(parents, graph, settings, turns, reference).evidence(
                    some
                ),
                runnable,
            )
    trials = []
    for name, gathered in evidence.items():
        every = (*findings[name], *gathered.findings)
        trials.append(decide(replace(gathered, findings=every), settings))
    return trials


def confirmed_evidence(
    judge: Callable[[Sequence[Candidate]], Mapping[str, Evidence]], candidates: Sequence[Candidate]
) -> dict[str, Evidence]:
    """Return the evidence on candidates by name, from a second judging where it is doubtful."""
    evidence = dict(judge(candidates))
    if doubtful := [tried for tried in candidates if evidence[tried.name].is_doubtful]:
        second = judge(doubtful)
        evidence |= {name: evidence[name].confirmed_by(second[name]) for name in second}
    return evidence


def direct_twins(candidates: Sequence[Candidate]) -> dict[str, Candidate]:
    """Return for each candidate whose passes are called in another way the one called directly.

    Its time, and that of the way of calling, are the least that a call can take. It is one of the
    candidates, or added, once for all that differ in the way of calling alone. A candidate whose
    other ops Inductor compiles has none: it takes longer directly, and compiles all once more.
    """
    known, twins = list(candidates), {}
    for each in candidates:
        if each.kind == "passes" and each.call != "direct" and each.residual == "eager":
            twin = next((other for other in known if other.is_direct_call_of(each)), None)
            if twin is None:
                twin = replace(each, name=f"{each.name}, called directly", call="direct")
                known.append(twin)
            twins[each.name] = twin
    return twins


def unlike_direct(evidence: Evidence, twin: Evidence) -> Evidence:
    """Return the evidence with a finding if a candidate works, and fails when called directly."""
    is_right = evidence.check is not None and evidence.check.comparison.status == "ok"
    if not is_right or (twin.check is not None and twin.check.comparison.status == "ok"):
        return evidence
    text = twin.failure[1] if twin.failure else "its outputs are wrong"
    new = finding("unlike_direct", f"called directly: {text}")
    return replace(evidence, findings=(*evidence.findings, new))


def with_direct_ms(evidence: Evidence, twin: Evidence) -> Evidence:
    """Return the evidence with the time of its passes called directly, if both were timed."""
    if evidence.timing is None or twin.timing is None or not twin.timing.rounds_ms:
        return evidence
    direct_ms = float(low_mean(np.array(twin.timing.rounds_ms).reshape(-1)))
    return replace(evidence, facts={**evidence.facts, "direct_ms": direct_ms})


def prepared_graph(parents: ParentPool, graph: TaskGraph, settings: JudgeSettings) -> PreparedGraph:
    """Return a graph with its inputs, cached or new, or raise GraphError if they cannot be made."""

    def prepare() -> PreparedGraph:
        retargeted = retarget(graph.graph, kind_of(settings.device))
        kinds = enumerate(KINDS, settings.seed)
        input_sets = [make_inputs(retargeted, kind, seed) for seed, kind in kinds]
        return prepare_graph(retargeted, input_sets)

    return parents.prepared_graphs.get(graph.graph, settings.device, settings.seed, prepare)


def hard_inputs(
    graph: TaskGraph, settings: JudgeSettings, is_large: bool
) -> Iterator[tuple[str, Sequence[InputValue]]]:
    """Yield the extreme and the structured inputs of a graph, with their names."""
    assert settings.input_seed is not None, "drawn for every graph"
    retargeted = retarget(graph.graph, kind_of(settings.device))
    yield "extreme", make_inputs(retargeted, "extreme", settings.input_seed)
    count = min(settings.num_structured, 1) if is_large else settings.num_structured
    for values in make_structured(retargeted, settings.input_seed, count):
        yield "structured", values


@contextmanager
def _phase(seconds: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[name] += time.perf_counter() - start


@dataclass
class _TrialSession:
    _parents: ParentPool
    _graph: TaskGraph
    _settings: JudgeSettings
    _turns: DeviceTurns
    _timed: Candidate
    _phases_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _notes: tuple[Finding, ...] = ()

    def evidence(self, candidates: Sequence[Candidate]) -> dict[str, Evidence]:
        """Return the evidence on every candidate, by name."""
        try:
            twins = {} if self._settings.timing is None else direct_twins(candidates)
            with ExitStack() as stack:
                every = list(dict.fromkeys([*candidates, *twins.values()]))
                evidence = self._evidence(every, stack)
            for name, twin in twins.items():
                evidence[name] = unlike_direct(evidence[name], evidence[twin.name])
            for candidate in candidates:
                direct = twins.get(candidate.name, candidate)
                if direct.kind == "passes" and direct.call == "direct":
                    twin = evidence[direct.name]
                    evidence[candidate.name] = with_direct_ms(evidence[candidate.name], twin)
            return {
                candidate.name: self._fenced(candidate, evidence[candidate.name])
                for candidate in candidates
            }
        except (WorkerFailureError, GraphError) as cause:
            if names_exhaustion(str(cause)):
                raise WorkerError(f"the reference failed: {cause}") from cause
            failure: tuple[Status, str] = ("reference_error", f"the reference failed: {cause}")
            names = (self._graph.task, self._graph.name)
            return {
                candidate.name: Evidence(*names, candidate.name, failure=failure)
                for candidate in candidates
            }

    def _evidence(self, candidates: Sequence[Candidate], stack: ExitStack) -> dict[str, Evidence]:
        with _phase(self._phases_s, "inputs"):
            self._prepared = prepared_graph(self._parents, self._graph, self._settings)
            note = finding("nothing_varies", "no output depends on what differs between draws")
            self._notes = () if varies(self._graph.graph) else (note,)
        with _phase(self._phases_s, "reference"):
            oracle = self._load(self._parents.reference(), REFERENCE, stack)
            is_large = self._prepared.content.nbytes > LARGE_BYTES
            hard = hard_inputs(self._graph, self._settings, is_large)
            self._expected = Expected(self._prepared, oracle, hard)
        evidence = {}
        loaded: dict[str, LoadedWorker] = {}
        for candidate in candidates:
            evidence[candidate.name], worker = self._compare(candidate, stack)
            if worker is not None:
                loaded[candidate.name] = worker
        if loaded and self._settings.timing is not None:
            with _phase(self._phases_s, "reference"):
                reference = self._load(self._parents.of(self._timed), self._timed, stack)
                reference.run(FRESH)
                reference.restore(FRESH)
            compared = [evidence[name] for name in loaded]
            workers = [oracle, reference, *loaded.values()]
            timed = self._time(workers, compared, self._settings.timing)
            evidence |= {completed.candidate: completed for completed in timed}
        return evidence

    def _fenced(self, candidate: Candidate, evidence: Evidence) -> Evidence:
        if candidate.passes is None or not is_worth_fencing(evidence):
            return evidence
        parts = (self._parents, self._prepared, self._expected, candidate, self._settings)
        with _phase(self._phases_s, "fence"):
            evidence = fenced(*parts, evidence)
        phases_s = {**evidence.facts.get("phases_s", {}), "fence": self._phases_s["fence"]}
        return replace(evidence, facts={**evidence.facts, "phases_s": phases_s})

    def _load(self, parent: WorkerParent, candidate: Candidate, stack: ExitStack) -> LoadedWorker:
        is_counted = self._settings.rules == "strict" and candidate.kind == "passes"
        counter = worker_library("op_counter") if is_counted else None
        worker = LoadedWorker(parent, self._prepared, candidate, self._settings, op_counter=counter)
        return stack.enter_context(worker)

    def _compare(
        self, candidate: Candidate, stack: ExitStack
    ) -> tuple[Evidence, LoadedWorker | None]:
        phases_s: dict[str, float] = defaultdict(float)
        worker: LoadedWorker | None = None
        failure: tuple[Status, str] | None = None
        check: CheckResult | None = None
        try:
            with _phase(phases_s, "start"):
                worker = self._load(self._parents.of(candidate), candidate, stack)
            with _phase(phases_s, "compile"):
                worker.run(0)
                worker.restore(0)
            has_match = any(report.num_matches for report in worker.matches)
            if candidate.kind == "passes" and not has_match:
                misses = [report.miss for report in worker.matches if report.miss]
                text = "no pass matched; nearest miss of " + "; of ".join(misses)
                failure = ("no_match", text if misses else "the folder lists no pass")
            else:
                with _phase(phases_s, "compare"):
                    check = self._expected.check(worker, self._settings.strides)
        except WorkerFailureError as cause:
            failure = (cause.status, str(cause))
        counted = measurement_findings.counted_findings(worker)
        evidence = Evidence(
            self._graph.task,
            self._graph.name,
            candidate.name,
            self._parents.sandbox.name,
            (*(check.findings if check else ()), *self._notes, *counted),
            failure,
            check,
            facts={**_facts(worker), "phases_s": dict(phases_s)},
        )
        if check is not None and check.comparison.status == "ok":
            for name, seconds in phases_s.items():
                self._phases_s[name] += seconds
            return evidence, worker
        if worker is not None:
            worker.worker.close()
        return evidence, None

    def _time(
        self, loaded: Sequence[LoadedWorker], compared: Sequence[Evidence], plan: TimingPlan
    ) -> list[Evidence]:
        _, reference, *candidates = loaded
        timeout_s = self._settings.call_timeout_s
        timed = [TimedWorker(worker, plan.max_calls, timeout_s) for worker in loaded]
        is_cpu = kind_of(self._settings.device) == "cpu"
        profiles: list[Profiled | None] = [None] * len(loaded[1:])
        try:
            with self._turns.alone():
                with _phase(self._phases_s, "timing"):
                    measurement = self._measure(timed, plan)
                    num_bytes = num_written(reference.forms, measurement.shared)
                    rates = known_rates(self._parents.num_threads, kind_of(self._settings.device))
                    roofline = self._expected.roofline(num_bytes, rates)
                if not is_cpu:
                    with _phase(self._phases_s, "profile"):
                        profiles = [worker.profile(HOT_CALLS) for worker in loaded[1:]]
        finally:
            for worker in timed:
                worker.close()
        self._phases_s["waiting"] = self._turns.waited_s
        precision = self._precision(loaded[0], reference, measurement.timings[1:])
        usual_threads = reference.worker.num_threads()
        completed = []
        for evidence, worker, timing, profile, inaccuracies in zip(
            compared, candidates, measurement.timings[1:], profiles[1:], precision, strict=True
        ):
            names = {old.name for old in evidence.findings}
            times = (timing.rounds_ms, timing.reference_rounds_ms)
            findings = (
                *evidence.findings,
                *timing.findings,
                *(new for new in inaccuracies if new.name not in names),
                *measurement_findings.torch_findings(timing.observed, self._settings.rules),
                *(
                    new
                    for new in measurement_findings.counted_findings(worker)
                    if new.name not in names
                ),
                *measurement_findings.company_findings(worker, usual_threads),
                *measurement_findings.roofline_findings(roofline if is_cpu else None, *times),
            )
            facts = {
                **_facts(worker),
                "first_call_s": worker.first_call_s,
                "phases_s": dict(self._phases_s),
                "profile": profile,
                "reference_profile": profiles[0],
                "roofline": roofline,
            }
            completed.append(replace(evidence, findings=findings, timing=timing, facts=facts))
        return completed

    def _precision(
        self, oracle: LoadedWorker, reference: LoadedWorker, timings: Sequence[WorkerTiming]
    ) -> list[list[Finding]]:
        """Return findings on the accuracy of timed calls, against the oracle in float64."""
        exact: dict[Draw, Float64Result | None] = {}
        precision = []
        for timing in timings:
            accuracies: dict[int, Accuracy | None] = {}
            for sample in timing.samples:
                if sample.draw not in exact:
                    exact[sample.draw] = self._exact(oracle, sample.draw)
                right = exact[sample.draw]
                if right is not None and len(right.outputs) == len(sample.outputs):
                    accuracies[sample.draw.input_set] = worst_accuracy(
                        reference.forms, sample.outputs, sample.expected, right.outputs
                    )
            found = precision_findings(accuracies.get(FRESH_SET), accuracies.get(EXTREME_SET))
            precision.append(found)
        return precision

    def _exact(self, oracle: LoadedWorker, draw: Draw) -> Float64Result | None:
        for index, target in enumerate(oracle.memory_of(FRESH)):
            if target is not None:
                self._fresh.write(draw, index, target)
        exact = oracle.exact(FRESH)
        oracle.restore(FRESH)
        return exact

    def _measure(self, timed: list[TimedWorker], plan: TimingPlan) -> Measurement:
        """Measure, and repeat while the measurement is unsteady; the oracle comes first."""
        oracle, *workers = timed
        random = np.random.default_rng(secrets.randbits(128))
        hard = self._expected.hard[:MAX_TIMED_HARD]
        if not hard or hard[0].name != "extreme":
            hard = []
        input_sets = [self._prepared.input_sets[number] for number in (FRESH, RECORDED)]
        input_sets += [each.values for each in hard]
        slack = [self._expected.fresh_slack(), None, *(each.largest_slack for each in hard)]
        pools = integer_pools(self._graph.graph, random, POOL_SPARE)
        self._fresh = fresh = FreshInputs(self._prepared.tensors, input_sets, random, pools, slack)
        measurement: Measurement | None = None
        for _ in range(self._settings.max_repeats):
            last = measurement
            measurement = interleave(
                workers, oracle, plan, fresh, random, self._prepared, self._parents.num_threads
            )
            if last is not None:  # wrong values stay wrong
                measurement = measurement.remembering(last)
            is_steady = measurement.timings[0].is_steady(self._settings.self_tolerance)
            if is_steady and not measurement.needs_repeat:
                break
        assert measurement is not None, "measured once at least"
        return measurement


def _facts(worker: LoadedWorker | None) -> dict[str, Any]:
    if worker is None:
        return {}
    matches: Counter[str] = Counter()
    for report in worker.matches:
        matches[report.name] += report.num_matches
    return {"matches": dict(matches), "load_s": worker.load_s}
