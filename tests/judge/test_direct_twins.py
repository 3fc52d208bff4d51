"""Passes that are called in another way are called directly too, by a worker beside."""

from dataclasses import replace
from pathlib import Path

import pytest

from passnet.judge.candidate import Candidate
from passnet.judge.judge import direct_twins
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import find_sandbox
from tests.judge.folders import GOOD, write_passes
from tests.judge.trials import judge

ONLY_COMPILED = """
import traceback

def replacement(x, y):
    if not any("eval_frame" in frame.filename for frame in traceback.extract_stack()):
        raise RuntimeError("called directly")
    return torch.clamp(x + y, min=0)
"""


def test_each_has_one_unless_a_candidate_is_it() -> None:
    compiled, guarded, direct = (
        Candidate(call, "passes", "folder", call, root="folder")
        for call in ("compiled", "guarded", "direct")
    )
    baseline = Candidate("inductor", "inductor")
    assert direct_twins([compiled, guarded, direct, baseline]) == {
        "compiled": direct,
        "guarded": direct,
    }
    (twin,) = direct_twins([guarded, baseline]).values()
    assert (twin.call, twin.passes) == ("direct", "folder") and twin.name != "guarded"


def test_one_is_added_for_all_that_differ_in_the_way_of_calling_alone() -> None:
    compiled, guarded = (
        Candidate(call, "passes", "folder", call, root="folder") for call in ("compiled", "guarded")
    )
    twins = direct_twins([compiled, guarded])
    assert twins["compiled"] is twins["guarded"]
    direct = replace(compiled, name="direct", call="direct")
    assert direct_twins([compiled, direct])["compiled"] is direct


def test_what_inductor_compiles_is_not_compiled_once_more() -> None:
    passes = Candidate("inlined", "passes", "folder", "compiled", "inlined", "folder")
    assert direct_twins([passes, replace(passes, name="rest", residual="inductor")]) == {}


@pytest.mark.xdist_group("statuses")
def test_passes_that_fail_when_called_directly_are_flagged(tmp_path: Path) -> None:
    with ParentPool(sandbox=find_sandbox()) as parents:
        for body, is_alike in ((ONLY_COMPILED, False), (GOOD, True)):
            folder = write_passes(tmp_path / f"one-{is_alike}" / "passes", body)
            trial = judge(parents, folder, "compiled")
            names = [item.name for item in trial.findings if item.weight != "note"]
            assert ("unlike_direct" in names) is not is_alike, trial
            assert (trial.direct_ms is not None) is is_alike
        direct = judge(parents, folder, "direct")
        assert direct.direct_ms == direct.candidate_ms
