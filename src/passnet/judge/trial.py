"""What judging works with and what it makes: its settings, and the record of one trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from passnet.judge.findings import Finding
from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.protocol.messages import Profiled, WorkerLimits
from passnet.judge.timing.clock import Rounds, TimingPlan
from passnet.score.status import Status

MAX_TEXT = 600
"""Most characters of a trial's error."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How graphs are judged.

    Args:
        device: "cpu", "cuda", or for tests `device.STAGED`.
        seed: of the inputs.
        timing: how long to measure; None compares only, and gives no speedup.
        limits: what a worker may use.
        compile_timeout_s: for loading, and for the first call.
        call_timeout_s: for every later call.
        self_tolerance: how far the reference may be from itself, and be held up waiting for a
            processor, before a measurement is repeated.
        max_repeats: how often it is repeated before its trials are `unstable`.
        rules: what code outside patterns may use: "strict", own kernels only, or "open".
    """

    device: str = "cpu"
    seed: int = 0
    timing: TimingPlan | None = field(default_factory=TimingPlan)
    limits: WorkerLimits = WorkerLimits(8192)
    compile_timeout_s: float = 180.0
    call_timeout_s: float = 30.0
    self_tolerance: float = 0.1
    max_repeats: int = 3
    rules: RulesName = "open"


@dataclass(frozen=True, slots=True)
class Trial:
    """How one candidate did on one graph of a task.

    `speedup` with the bounds of its 95 % interval is None unless the status is ok. `self_ratio` is
    the reference against itself in the same rounds, `held_up` how far it had to wait for a
    processor (see `clock.Measurement`). `matches` maps each pass to how often it did.
    Times are kept by round and turn; the hot ones are of one of many calls in a row, on a device.
    `profile` says what the worker saw a GPU do in a call, `reference_profile` the reference's.
    `phases_s` says where the judge's time on this trial went. `sandbox` is what confined the
    candidate, "none" also for a baseline, which needs none. `findings` is what was found out about
    its honesty; one that rejects makes the status `cheat`. `relative_error` is that of the least
    accurate output against float64 on fresh inputs, `eager_error` that of eager torch.
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
    held_up: float | None = None
    error: str | None = None
    matches: dict[str, int] = field(default_factory=dict)
    reference_rounds_ms: Rounds = ()
    candidate_rounds_ms: Rounds = ()
    calls_per_turn: int | None = None
    reference_hot_ms: float | None = None
    candidate_hot_ms: float | None = None
    reference_profile: Profiled | None = None
    profile: Profiled | None = None
    relative_error: float | None = None
    eager_error: float | None = None
    load_s: float | None = None
    first_call_s: float | None = None
    phases_s: dict[str, float] = field(default_factory=dict)
    sandbox: SandboxName = "none"
    findings: tuple[Finding, ...] = ()


def with_findings(trial: Trial, findings: Sequence[Finding]) -> Trial:
    """A trial with more findings, the first ones; one that rejects takes its result away."""
    every = (*findings, *trial.findings)
    proven = [item for item in every if item.weight == "reject"]
    if not proven:
        return replace(trial, findings=every)
    place = f"{proven[0].place}: " if proven[0].place else ""
    return replace(
        trial,
        status="cheat",
        findings=every,
        error=f"{place}{proven[0].name}: {proven[0].evidence}"[:MAX_TEXT],
        smallest_t=None,
        speedup=None,
        speedup_low=None,
        speedup_high=None,
    )
