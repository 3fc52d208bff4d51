"""Settings of the judge: limits, tolerance, rules, and the length of a measurement."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from passnet.judge.inspection.rules import RulesName
from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.protocol.messages import WorkerLimits

StridesName: TypeAlias = Literal["same", "any"]


@dataclass(frozen=True, slots=True)
class TimingPlan:
    """The length and the parts of a measurement.

    Args:
        min_rounds: least rounds.
        max_rounds: most rounds.
        precision: half the width of a speedup's interval, as a share of it; a measurement ends
            early once all its candidates have reached it.
        burst_ms: time of a worker's calls in one turn, as far as `max_calls` allows.
        min_calls: least calls of a worker in one turn; two in any case.
        max_calls: most calls; fewer if they need more memory than `timed_worker.BURST_BYTES`.
        slow_ms: calls of this length and more are fewer, see `SLOW_ROUNDS`.
        look_share: share of turns after which some calls of each worker are compared with the
            reference's; more if calls are slow, and all of them on a device.
        audit_share: share of turns after which all outputs and arguments of the compared calls
            are read, and the torch ops of replacements observed in a further call. One more turn,
            after the last that counts, is audited in any case.
        keeps_awake: keep the judge's processor and its workers' from halting meanwhile, by programs
            that give way to all others; a halted one wakes up slower, with what others left in it.
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
    keeps_awake: bool = True


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Settings of the judge."""

    device: str = field(default="cpu", metadata={"choices": ("cpu", "cuda")})
    """Run graphs on this device.

    Tests also take `protocol.device.STAGED`.
    """
    seed: int = 0
    """Draw inputs with this seed."""
    input_seed: int | None = field(default=None, metadata={"least": 0, "most": 2**63 - 1})
    """Draw extreme and structured inputs with this seed, as a trial records it.

    None draws a new one for every graph.
    """
    num_structured: int = 4
    """Sets of structured inputs that candidates are compared on; one if they are large."""
    timing: TimingPlan | None = field(default_factory=TimingPlan)
    """The plan of measuring; None compares only, and gives no speedup."""
    limits: WorkerLimits = WorkerLimits(8192)
    """Limits of a worker."""
    compile_timeout_s: float = 180.0
    """Give a candidate this many seconds to load and for its first call, together."""
    call_timeout_s: float = 30.0
    """Give a candidate this many seconds for each later call."""
    trial_timeout_s: float = 300.0
    """Seconds that the judge waits for one worker in all, after its first call: a call may take
    five of them, since the fewest calls of a measurement, with those before it, are 52."""
    self_tolerance: float = 0.1
    """Repeat a measurement if timings of the reference differ by more than this share."""
    max_repeats: int = 3
    """Repeat a measurement this often before its trials are `unstable`."""
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
