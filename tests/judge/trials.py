"""Trials of pass folders as tests judge them: quickly, with a good candidate beside each."""

from pathlib import Path

from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.trial import Trial
from tests.judge.folders import GOOD, small_graph, write_passes

QUICK = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, audit_share=0.5, keeps_awake=False),
    limits=WorkerLimits(4096),
    compile_timeout_s=5,
    call_timeout_s=10,
    self_tolerance=1e9,
)


def judge(
    parents: ParentPool, folder: Path, call: str = "direct", settings: JudgeSettings = QUICK
) -> Trial:
    """The trial of a pass folder, with a good candidate beside it that must come out ok."""
    good = write_passes(folder.parent / "good", GOOD)
    candidates = [
        Candidate("bad", "passes", str(folder), call, root=str(folder.parent.parent)),  # type: ignore[arg-type]
        Candidate("good", "passes", str(good), "direct", root=str(folder.parent.parent)),
    ]
    bad, beside = judge_graph(parents, small_graph(), candidates, settings)
    assert (beside.status, beside.smallest_t) == ("ok", -10), (beside.status, beside.error)
    return bad
