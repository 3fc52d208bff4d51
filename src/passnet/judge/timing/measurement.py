"""What is measured of several workers: rounds of times, and what was seen beside them."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from passnet.core.records.dtypes import Array
from passnet.judge.compare import Comparison, worse
from passnet.judge.findings import Finding
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.protocol.messages import Observed
from passnet.judge.timing.estimate import self_ratio
from passnet.judge.timing.fresh_inputs import Draw
from passnet.judge.timing.probes import SharedPair

UNSURE = ("early_work", "late_work")
"""Findings that a busy machine can look like, though not again and again."""

Rounds: TypeAlias = tuple[tuple[float, float], ...]
"""The times of a worker's two turns in every round, in milliseconds a call; each is that of a burst
of calls."""


@dataclass(frozen=True, slots=True)
class TimedSample:
    """All outputs of one timed call, and of the reference on the same inputs."""

    draw: Draw
    outputs: list[Array | None]
    expected: list[Array | None]


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
    """Share of the reference's turns for which something else had its processor. It is no part of
    any time."""

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

    samples: tuple[TimedSample, ...] = ()
    """Timed calls for the precision of their outputs, one for each timed set of inputs at most."""

    def remembering(self, earlier: "WorkerTiming") -> "WorkerTiming":
        """The same, with what an earlier one of the same candidate showed beside times."""
        findings = {
            found.name: found
            for found in (*earlier.findings, *self.findings)
            if found in self.findings or found.name not in UNSURE
        }
        return replace(
            self,
            comparison=worse(self.comparison, earlier.comparison),
            findings=tuple(findings.values()),
            failure=self.failure or earlier.failure,
        )

    def is_steady(self, tolerance: float) -> bool:
        """Whether the reference agrees with itself."""
        ratio = self_ratio(np.array(self.reference_rounds_ms))
        return bool(abs(np.log(ratio)) <= np.log1p(tolerance))


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
        return bool(names.intersection(UNSURE))

    def remembering(self, earlier: "Measurement") -> "Measurement":
        """The same, with what an earlier one of the same workers showed beside times."""
        timings = [
            timing.remembering(before)
            for timing, before in zip(self.timings, earlier.timings, strict=True)
        ]
        return Measurement(tuple(timings), self.shared)
