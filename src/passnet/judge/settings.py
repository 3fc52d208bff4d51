"""How graphs are judged: limits, tolerance, rules, and how long to measure."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.protocol.messages import WorkerLimits

StridesName: TypeAlias = Literal["same", "any"]


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """How long to measure.

    Args:
        min_rounds: rounds to make in any case.
        max_rounds: rounds after which the measurement ends.
        precision: half the width of a speedup's interval, as a share of it, at which a measurement
            ends before its time, if all its candidates have reached it.
        burst_ms: time that a worker is called for in one turn, where `max_calls` allows.
        min_calls: calls of a worker in one turn at least, two in any case.
        max_calls: and at most; fewer where they need more memory than `timed_worker.BURST_BYTES`.
        slow_ms: of calls of this length and more there are fewer, see `SLOW_ROUNDS`.
        look_share: share of turns after which some calls of each worker are compared with the
            reference's; a larger one where calls are slow, and all of them on a device.
        audit_share: share of turns after which all of the outputs and arguments that are looked at
            are read, and the torch ops of replacements observed in a further call. One more turn,
            after the last that counts, is audited in any case.
    """

    seconds: float = 0.8
    """Measure each candidate on each graph for this many seconds."""

    min_rounds: int = 6
    max_rounds: int = 80
    precision: float = 0.01
    burst_ms: float = 1.0
    min_calls: int = 3
    max_calls: int = 100
    slow_ms: float = 20.0
    look_share: float = 0.5
    audit_share: float = 0.02


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """How graphs are judged."""

    device: str = field(default="cpu", metadata={"choices": ("cpu", "cuda")})
    """Run graphs on this device.

    Tests also take `protocol.device.STAGED`.
    """

    seed: int = 0
    """Draw inputs with this seed."""

    timing: TimingPlan | None = field(default_factory=TimingPlan)
    """How long to measure; None compares only, and gives no speedup."""

    limits: WorkerLimits = WorkerLimits(8192)
    """What a worker may use."""

    compile_timeout_s: float = 180.0
    """Give a candidate this many seconds to load and for its first call."""

    call_timeout_s: float = 30.0
    """Give a candidate this many seconds for each later call."""

    trial_timeout_s: float = 300.0
    """Seconds that one worker is waited for in all, after its first call: a call may take five of
    them where the fewest calls that make a measurement, with what is compared before, are 52.
    """

    self_tolerance: float = 0.1
    """Repeat a measurement if timings of the reference differ by more than this share."""

    max_repeats: int = 3
    """How often a measurement is repeated before its trials are `unstable`."""

    rules: RulesName = "open"
    """Let replacements call any torch op (open), or only their own kernels (strict)."""

    strides: StridesName = "same"
    """Require the memory order of eager torch's outputs (same), or accept any, as published."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of a run; two runs with equal settings can become one."""

    judge: JudgeSettings = field(default_factory=JudgeSettings)
    """Settings of the judge."""

    num_threads: int = field(default=1, metadata={"most": 1024})
    """Run the reference and each candidate with this many threads."""

    sandbox: SandboxName = "none"
    """Sandbox of candidate code; see `find_sandbox`."""

    held_out: str | None = None
    """Content hash of the suite of held-out shapes, if any."""
