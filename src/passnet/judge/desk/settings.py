"""What a run measures with."""

from dataclasses import dataclass, field

from passnet.judge.processes.sandbox import SandboxName
from passnet.judge.settings import JudgeSettings


@dataclass(frozen=True)
class RunSettings:
    """What a run measures with; two runs with the same settings can be one.

    Args:
        judge: how graphs are judged.
        num_threads: threads of every worker.
        sandbox: what confines candidate code; see `find_sandbox`.
        held_out: the content hash of the suite of held-out shapes, if any.
    """

    judge: JudgeSettings = field(default_factory=JudgeSettings)
    num_threads: int = 1
    sandbox: SandboxName = "none"
    held_out: str | None = None
