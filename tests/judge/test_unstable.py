"""A measurement that cannot be trusted is made again, and then says so: `unstable`."""

import itertools

import pytest

from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.timing.clock import TimingPlan
from passnet.judge.trial import JudgeSettings, Trial
from tests.judge.folders import small_graph

pytestmark = pytest.mark.xdist_group("judge")  # those that measure take turns

SETTINGS = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3),
    limits=WorkerLimits(4096),
    max_repeats=2,
    self_tolerance=0.1,
)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which nobody waits, and everybody is as fast as before."""
    monkeypatch.setattr("passnet.judge.timing.timed_worker.waited_ns", lambda _: 0)
    monkeypatch.setattr("passnet.judge.processes.worker_process.waited_ns", lambda _: 0)
    monkeypatch.setattr("passnet.judge.judge.self_ratio", lambda _: 1.0)


def judged_once(parents: ParentPool) -> Trial:
    [trial] = judge_graph(
        parents, small_graph(), [Candidate("eager", "eager", None, "direct")], SETTINGS
    )
    return trial


def test_a_measurement_in_which_the_reference_differs_from_itself_is_unstable(
    parents: ParentPool, steady: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = judged_once(parents)
    assert trial.status == "ok"
    monkeypatch.setattr("passnet.judge.judge.self_ratio", lambda _: 1.2)
    trial = judged_once(parents)
    assert trial.status == "unstable" and trial.speedup is None
    assert trial.self_ratio == 1.2 and trial.reference_rounds_ms
    assert "too busy" in (trial.error or "")


def test_a_measurement_in_which_the_reference_waits_for_a_processor_is_unstable(
    parents: ParentPool, steady: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = itertools.count(step=10**9)
    monkeypatch.setattr("passnet.judge.timing.timed_worker.waited_ns", lambda _: next(waited))
    trial = judged_once(parents)
    assert trial.status == "unstable" and trial.speedup is None
    assert trial.held_up is not None and trial.held_up > 0.1
    assert "waits for a processor" in (trial.error or "")
