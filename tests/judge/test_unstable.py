"""A measurement that cannot be trusted is made again, and then says so: `unstable`."""

from dataclasses import replace

import pytest

from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from tests.judge.folders import small_graph

pytestmark = pytest.mark.xdist_group("statuses")

SETTINGS = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, keeps_awake=False),
    limits=WorkerLimits(4096),
    max_repeats=2,
)


@pytest.mark.parametrize(("self_tolerance", "status"), [(1e6, "ok"), (1e-12, "unstable")])
def test_a_trial_is_unstable_where_the_reference_differs_from_itself_by_more_than_is_tolerated(
    parents: ParentPool, self_tolerance: float, status: str
) -> None:
    settings = replace(SETTINGS, self_tolerance=self_tolerance)
    candidates = [Candidate("eager", "eager", None, "direct")]
    [trial] = judge_graph(parents, small_graph(), candidates, settings)
    assert trial.status == status
    assert (trial.speedup is None) == (status == "unstable")
    assert trial.reference_rounds_ms and trial.self_ratio is not None
