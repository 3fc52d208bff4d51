"""The verdict: the one place that decides a trial, from findings, comparison and timing."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.score.status import Status
from passnet.judge.settings import JudgeSettings
from passnet.judge.timing.estimate import low_mean, self_ratio, speedup
from passnet.judge.timing.measurement import UNSURE, WorkerTiming
from passnet.judge.trial import MAX_TEXT, Trial
from passnet.judge.verdict.check import CheckResult
from passnet.judge.verdict.compare import worse
from passnet.judge.verdict.findings import Finding

_DOUBTFUL = "loop_taken_over"

BUSY = "the reference differs from itself; the machine is too busy"
"""The error of a trial whose measurement was unsteady."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence that a trial is decided from; None or empty where a step did not happen."""

    task: str
    graph: str
    candidate: str

    sandbox: SandboxName = "none"
    """The sandbox of the candidate."""
    findings: tuple[Finding, ...] = ()
    """Findings on its honesty, in the order in which a reader should see them."""
    failure: tuple[Status, str] | None = None
    """Status and text of a failure of candidate or reference, before or after timing."""
    check: CheckResult | None = None
    """The comparison of its outputs before it is timed."""
    timing: WorkerTiming | None = None
    """Its timing beside the reference."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Fields of the trial that no decision depends on: matches, seconds, profiles."""

    @property
    def is_doubtful(self) -> bool:
        """Return whether its worker stopped in foreign code; it counts only if a second one does
        too.

        Honest workers did so by remains of old calls on their stack (see `Standstill.returns`).
        """
        return any(finding.name == _DOUBTFUL for finding in self.findings)

    def confirmed_by(self, second: "Evidence") -> "Evidence":
        """Return the evidence of a second worker, with all of this one's but the doubtful part."""
        outdated = {finding.name for finding in second.findings} | {_DOUBTFUL, *UNSURE}
        lasting = (finding for finding in self.findings if finding.name not in outdated)
        check, timing = second.check, second.timing
        if check is not None and self.check is not None:
            check = replace(check, comparison=worse(check.comparison, self.check.comparison))
        if timing is not None and self.timing is not None:
            timing = timing.remembering(self.timing)
        return replace(second, findings=(*lasting, *second.findings), check=check, timing=timing)


def decide(evidence: Evidence, settings: JudgeSettings) -> Trial:
    """Return the trial of a candidate on a graph.

    A proven cheat is a cheat. Next, the first failure counts, then the form of the outputs, then
    whether the machine was quiet enough to measure on, unless the values are wrong at every level.
    Any other trial is `ok`, however wrong its values are: `smallest_t` tells how wrong.
    """
    names = (evidence.task, evidence.graph, evidence.candidate)
    trial = Trial(
        *names,
        "ok",
        sandbox=evidence.sandbox,
        findings=evidence.findings,
        input_seed=settings.input_seed,
        **evidence.facts,
    )
    if evidence.check is not None and evidence.check.accuracy is not None:
        accuracy = evidence.check.accuracy
        trial = replace(trial, relative_error=accuracy.error, eager_error=accuracy.eager_error)
    if evidence.timing is not None:
        trial = _timed(trial, evidence.timing, settings)
    return _judged(trial, evidence, settings)


def _judged(trial: Trial, evidence: Evidence, settings: JudgeSettings) -> Trial:
    proof = next((finding for finding in evidence.findings if finding.weight == "reject"), None)
    if proof is not None:
        where = f"{proof.place}: " if proof.place else ""
        return _failed(trial, "cheat", f"{where}{proof.name}: {proof.evidence}")
    check, timing = evidence.check, evidence.timing
    failure = evidence.failure
    if failure is None and timing is not None and timing.failure is not None:
        failure = (timing.failure.status, str(timing.failure))
    if failure is not None:
        return _failed(trial, *failure)
    assert check is not None, "what did not fail was compared"
    comparison = worse(check.comparison, timing.comparison) if timing else check.comparison
    if comparison.status != "ok":
        return _failed(trial, comparison.status, comparison.text)
    trial = replace(trial, smallest_t=comparison.t, error=comparison.text)
    if timing is None:
        return trial
    if not timing.is_steady(settings.self_tolerance):
        is_wrong = comparison.t is None  # at every level, where no speed counts
        return replace(
            trial, status="ok" if is_wrong else "unstable", error=comparison.text or BUSY
        )
    rounds = (np.array(timing.reference_rounds_ms), np.array(timing.rounds_ms))
    ratio = speedup(*rounds, settings.seed)
    return replace(trial, speedup=ratio.value, speedup_low=ratio.low, speedup_high=ratio.high)


def _failed(trial: Trial, status: Status, text: str | None) -> Trial:
    return replace(trial, status=status, error=None if text is None else text[:MAX_TEXT])


def _timed(trial: Trial, timing: WorkerTiming, settings: JudgeSettings) -> Trial:
    reference = np.array(timing.reference_rounds_ms)
    trial = replace(trial, self_ratio=self_ratio(reference), held_up=timing.held_up)
    if not timing.rounds_ms:
        return trial
    return replace(
        trial,
        reference_rounds_ms=timing.reference_rounds_ms,
        candidate_rounds_ms=timing.rounds_ms,
        calls_per_turn=timing.calls_per_turn,
        reference_ms=float(low_mean(reference.reshape(-1))),
        candidate_ms=float(low_mean(np.array(timing.rounds_ms).reshape(-1))),
        reference_hot_ms=timing.reference_hot_ms,
        candidate_hot_ms=timing.hot_ms,
        reference_cold_ms=timing.reference_cold_ms,
        candidate_cold_ms=timing.cold_ms,
    )
