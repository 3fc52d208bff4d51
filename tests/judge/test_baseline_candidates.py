"""The candidates that are no pass folders: eager torch, no pass, and Inductor in its forms."""

from dataclasses import replace

import pytest

from passnet.errors import InputError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from tests.judge.folders import small_graph
from tests.judge.trials import QUICK

pytestmark = pytest.mark.xdist_group("statuses")


def test_the_baselines_run_and_agree(parents: ParentPool) -> None:
    candidates = [
        Candidate("eager", "eager", None, "direct"),
        Candidate("null", "null"),
        Candidate("null@direct", "null", None, "direct"),
        Candidate("eager@guarded", "eager", None, "guarded"),
        Candidate("null@guarded", "null", None, "guarded"),
    ]
    for trial in judge_graph(parents, small_graph(), candidates, QUICK):
        assert trial.status == "ok" and trial.smallest_t == -10, trial
        assert trial.speedup_low is not None and trial.speedup_high is not None
        assert trial.speedup_low <= (trial.speedup or 0) <= trial.speedup_high
        assert len(trial.candidate_rounds_ms) == 3


@pytest.mark.slow
def test_what_inductor_makes_is_called_behind_our_own_checks(parents: ParentPool) -> None:
    patient = replace(QUICK, compile_timeout_s=120)
    candidates = [
        Candidate("inductor@guarded", "inductor", None, "guarded"),
        Candidate("null@guarded@inductor", "null", None, "guarded", "inductor"),
        Candidate("null@inlined", "null", None, "compiled", "inlined"),
    ]
    for trial in judge_graph(parents, small_graph(), candidates, patient):
        assert (trial.status, trial.smallest_t) == ("ok", -10), trial


def test_what_is_inlined_is_not_judged_by_strict_rules(parents: ParentPool) -> None:
    candidates = [Candidate("null@inlined", "null", None, "compiled", "inlined")]
    with pytest.raises(InputError, match="judge it with @inductor"):
        judge_graph(parents, small_graph(), candidates, replace(QUICK, rules="strict"))


ROUNDS = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor, in_2: torch.SymInt):
        tmp_0 = in_0 * in_1
        tmp_1 = tmp_0 + in_1
        tmp_2 = tmp_1 * in_2
        return (tmp_2, tmp_0)
"""


def judged_in_bfloat16(parents: ParentPool, *candidates: Candidate) -> list[Trial]:
    """Trials on a graph of three roundings, which takes a number beside its tensors."""
    specs = [TensorSpec(f"in_{n}", (64, 64), "bfloat16", mean=0.0, std=1.0) for n in range(2)]
    number = TensorSpec("in_2", (), "int64", data=(3,))
    graph = TaskGraph("round", "round-0", Graph(parse_program(ROUNDS), (*specs, number)))
    patient = replace(QUICK, compile_timeout_s=300)
    return judge_graph(parents, graph, candidates, patient)


@pytest.mark.slow
def test_the_precise_inductor_keeps_the_roundings_that_the_plain_one_leaves_out(
    parents: ParentPool,
) -> None:
    trials = judged_in_bfloat16(
        parents,
        Candidate("inductor@direct", "inductor", None, "direct"),
        Candidate("inductor-precise", "inductor-precise"),
        Candidate("inductor-precise@direct", "inductor-precise", None, "direct"),
    )
    assert [trial.status for trial in trials] == ["ok"] * 3, trials
    plain, *precise = [trial.smallest_t for trial in trials]
    assert plain != -10 and precise == [-10, -10]


@pytest.mark.slow
def test_a_package_of_aotinductor_is_called_in_three_ways_and_built_once(
    parents: ParentPool,
) -> None:
    calls: tuple[CallMode, ...] = ("compiled", "direct", "guarded")
    candidates = [Candidate(f"aoti@{call}", "aoti", None, call) for call in calls]
    for trial in (trials := judged_in_bfloat16(parents, *candidates)):
        assert trial.status == "ok" and trial.speedup is not None, trial
    built, *cached = [(trial.load_s or 0) + (trial.first_call_s or 0) for trial in trials]
    assert all(seconds < built for seconds in cached), "only the first builds the package"
