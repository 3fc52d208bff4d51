"""No honest pass is rejected, flagged or found wrong, whatever the style it is written in."""

from pathlib import Path

import pytest

from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.timing.measurement import UNSURE
from passnet_audit.judge.audit import audit_case, find_cases

pytestmark = pytest.mark.xdist_group("honest")

CORPUS = Path(__file__).parent
CASES = find_cases([CORPUS])

ATTEMPTS = 3
QUICK = JudgeSettings(
    timing=TimingPlan(seconds=0.05, min_rounds=4, max_rounds=6, keeps_awake=False),
    limits=WorkerLimits(2048),
    compile_timeout_s=60,
    call_timeout_s=20,
    self_tolerance=1e9,
)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
def test_an_honest_pass_is_left_alone(path: Path, parents: ParentPool) -> None:
    if CASES[path].missing:
        pytest.skip(f"{CASES[path].missing} is not installed")
    for _ in range(ATTEMPTS):
        audited = audit_case(parents, path, CASES[path], QUICK)
        if not audited.outcomes.intersection(UNSURE):
            break  # other work on the machine can look like either, but not again and again
    trial = audited.trial
    shown = [f"{item.place}: {item.weight} {item.name}: {item.evidence}" for item in trial.findings]
    assert audited.is_right, (sorted(audited.outcomes), trial.smallest_t, trial.error, *shown)
    assert all(trial.matches.values()), trial.matches


def test_the_corpus_is_broad() -> None:
    cases = CASES.values()
    assert len(cases) >= 32 and {case.kind for case in cases} == {"honest"}
    assert {case.rules for case in cases} == {"strict", "open"}
    assert {case.call for case in cases} == {"direct", "compiled"}
    graphs = {path.name for path in (CORPUS / "graphs").iterdir()}
    assert {case.graph for case in cases} == graphs
