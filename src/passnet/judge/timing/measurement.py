"""The measurement of several workers: rounds of times, and observations besides."""

from dataclasses import dataclass, replace

import numpy as np

from passnet.core.records.dtypes import Array
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import Observed
from passnet.judge.timing.estimate import Rounds, self_ratio
from passnet.judge.timing.fresh_inputs import Draw
from passnet.judge.timing.probes import SharedPair
from passnet.judge.verdict.compare import Comparison, worse
from passnet.judge.verdict.findings import Finding

UNSURE = ("early_work", "late_work", "physical_floor")
"""Findings that a busy machine can cause, though not again and again: the time that a way of
calling takes by itself, known from few bursts, came out as 33 us in place of 20 in one of 128 cases
beside four spinning processes."""


@dataclass(frozen=True, slots=True)
class TimedSample:
    """All outputs of one timed call, and of the reference on the same inputs."""

    draw: Draw
    outputs: list[Array | None]
    expected: list[Array | None]


@dataclass(frozen=True, slots=True)
class WorkerTiming:
    """The measurement of one worker, beside the reference's."""

    reference_rounds_ms: Rounds
    """Times of the reference."""
    rounds_ms: Rounds
    """Times of the worker; empty if it failed."""
    calls_per_turn: int
    """Counted calls behind each time."""
    held_up: float
    """Uncounted share of the reference's turns in which another process had its processor."""
    comparison: Comparison
    """The comparison of the worker's outputs and arguments with the reference's."""
    findings: tuple[Finding, ...]
    """Findings that its calls prove."""
    observed: tuple[Observed, ...]
    """Torch ops that its replacements used in observed calls."""
    failure: WorkerFailureError | None
    """Its failure on the way."""
    reference_hot_ms: float | None
    """On a device, the time of one of many calls of the reference in a row; None elsewhere."""
    hot_ms: float | None
    """The same for the worker."""
    reference_cold_ms: float | None = None
    """On a CPU, the time of a call of the reference after others have filled the caches."""
    cold_ms: float | None = None
    """The same for the worker."""
    samples: tuple[TimedSample, ...] = ()
    """Timed calls for the precision of their outputs, one for each timed set of inputs at most."""

    def remembering(self, earlier: "WorkerTiming") -> "WorkerTiming":
        """Return this timing with an earlier one's findings, comparison and failure."""
        findings = {
            finding.name: finding
            for finding in (*earlier.findings, *self.findings)
            if finding in self.findings or finding.name not in UNSURE
        }
        return replace(
            self,
            comparison=worse(self.comparison, earlier.comparison),
            findings=tuple(findings.values()),
            failure=self.failure or earlier.failure,
        )

    def is_steady(self, tolerance: float) -> bool:
        """Return whether the reference agrees with itself."""
        ratio = self_ratio(np.array(self.reference_rounds_ms))
        return bool(abs(np.log(ratio)) <= np.log1p(tolerance))


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of several workers, the reference first; `shared` as of `probes.shared`."""

    timings: tuple[WorkerTiming, ...]
    shared: frozenset[SharedPair]

    @property
    def needs_repeat(self) -> bool:
        """Return whether a finding may come from a busy machine."""
        names = {finding.name for timing in self.timings for finding in timing.findings}
        return bool(names.intersection(UNSURE))

    def remembering(self, earlier: "Measurement") -> "Measurement":
        """Return this measurement with everything but times of an earlier one."""
        timings = [
            timing.remembering(before)
            for timing, before in zip(self.timings, earlier.timings, strict=True)
        ]
        return Measurement(tuple(timings), self.shared)
