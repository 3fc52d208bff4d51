"""The record of one candidate on one graph."""

from dataclasses import dataclass, field

from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.protocol.messages import Profiled
from passnet.judge.score.status import Status
from passnet.judge.timing.estimate import Rounds
from passnet.judge.timing.roofline import Roofline
from passnet.judge.verdict.findings import Finding

MAX_TEXT = 600
"""Most characters of a trial's error."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One candidate's result on one graph of a task; None where nothing was measured."""

    task: str
    """Name of the task in its suite."""
    graph: str
    """Name of the graph in its suite."""
    candidate: str
    """Name of the candidate in its run."""
    status: Status
    """The end of the trial; `ok` means that it ran and that its outputs have the right form."""
    smallest_t: int | None = None
    """Smallest tolerance level at which all outputs agree with the reference's; None at no level,
    and unless the status is `ok` or `unstable`."""
    speedup: float | None = None
    """`reference_ms / candidate_ms`, both of the faster half of turns; None unless `ok`."""
    speedup_low: float | None = None
    """Lower bound of the 95 % interval of the speedup."""
    speedup_high: float | None = None
    """Upper bound of the 95 % interval of the speedup."""
    reference_ms: float | None = None
    """Milliseconds of a call of the reference."""
    candidate_ms: float | None = None
    """Milliseconds of a call of the candidate."""
    direct_ms: float | None = None
    """Milliseconds of a call of the same passes in the same rounds, called directly."""
    self_ratio: float | None = None
    """The reference's first turns over its second turns in each round; 1 on a quiet machine."""
    held_up: float | None = None
    """Uncounted share of the reference's turns in which another process had its processor."""
    error: str | None = None
    """The failure, or the first output that differs, in words."""
    matches: dict[str, int] = field(default_factory=dict)
    """The number of matches of each pass, by its name."""
    input_seed: int | None = None
    """Seed of its extreme and structured inputs; with it as a setting they are drawn again."""
    reference_rounds_ms: Rounds = ()
    """Milliseconds of the reference's two turns in every round."""
    candidate_rounds_ms: Rounds = ()
    """Milliseconds of the candidate's two turns in every round."""
    calls_per_turn: int | None = None
    """Counted calls in one turn."""
    reference_hot_ms: float | None = None
    """On a device, milliseconds of one of many calls of the reference in a row, the cache warm."""
    candidate_hot_ms: float | None = None
    """The same for the candidate."""
    reference_cold_ms: float | None = None
    """On a CPU, milliseconds of a call of the reference after other work has filled the caches."""
    candidate_cold_ms: float | None = None
    """The same for the candidate."""
    reference_profile: Profiled | None = None
    """GPU activity in a call as the reference's worker saw it; a note, never the measurement."""
    profile: Profiled | None = None
    """The same for the candidate's worker."""
    relative_error: float | None = None
    """Error of the least accurate output against float64, on fresh inputs, as a share of it."""
    eager_error: float | None = None
    """The error of eager torch on the same output."""
    roofline: Roofline | None = None
    """Its least work and this machine's rates, from which T_sol follows (`roofline.ms`)."""
    load_s: float | None = None
    """Seconds that the worker took to load the candidate, by its own account."""
    first_call_s: float | None = None
    """Seconds of the first call, which compiles, by the worker's own account."""
    phases_s: dict[str, float] = field(default_factory=dict)
    """Seconds of the judge's time that went into this trial, by phase."""
    machine: str | None = None
    """Name of the machine that ran it."""
    sandbox: SandboxName = "none"
    """The sandbox of the candidate; "none" also for a baseline, which needs none."""
    findings: tuple[Finding, ...] = ()
    """Findings on its honesty; one that rejects makes the status `cheat`."""
