"""The judge on a GPU: where there is none, every test here is left out."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from passnet.bench.run import run_suite
from passnet.judge.candidate import Candidate
from passnet.judge.desk.candidates import parse_candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, RunSettings, TimingPlan
from passnet.judge.suite.suite import load_suite, only_tasks
from passnet.judge.trial import Trial
from tests.judge.folders import GOOD, small_graph, write_passes

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.xdist_group("judge"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

QUICK = JudgeSettings(
    device="cuda",
    timing=TimingPlan(seconds=0.1, min_rounds=3, max_rounds=6),
    limits=WorkerLimits(4096),
    self_tolerance=1e9,
)
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def parents() -> Iterator[ParentPool]:
    with ParentPool(sandbox=find_sandbox(), device="cuda") as made:
        yield made


def judge(parents: ParentPool, root: Path, body: str) -> Trial:
    """The trial of a replacement, with a good candidate beside it that must come out ok."""
    folder = write_passes(Path(tempfile.mkdtemp(dir=root)), "import torch\n" + body)
    good = write_passes(root / "good", GOOD)
    mine, beside = judge_graph(
        parents,
        small_graph((512, 1024)),
        [
            Candidate("mine", "passes", str(folder), "direct", root=str(root)),
            Candidate("good", "passes", str(good), "direct", root=str(root)),
        ],
        QUICK,
    )
    assert (beside.status, beside.smallest_t, beside.findings) == ("ok", -10, ()), beside.error
    return mine


def test_a_right_pass_is_measured_in_four_ways(parents: ParentPool, root: Path) -> None:
    trial = judge(parents, root, GOOD)
    assert trial.status == "ok" and trial.candidate_ms and trial.candidate_hot_ms, trial.error
    assert trial.profile is not None and trial.reference_profile is not None
    assert trial.profile.num_kernels == trial.reference_profile.num_kernels == 2
    assert 0 < trial.profile.kernel_ms <= trial.candidate_ms


STATUSES = {
    "more memory than it may use": (
        "def replacement(x, y):\n    return torch.empty(1 << 40, device=x.device)\n",
        "out_of_memory",
    ),
    "an error that spoils its context": (
        "def replacement(x, y):\n"
        "    return torch.arange(4, device=x.device)[torch.full((1,), 1 << 40, device=x.device)]\n",
        "runtime_error",
    ),
    "an output on another device": (
        "def replacement(x, y):\n    return torch.relu(x + y).cpu()\n",
        "wrong_dtype",
    ),
}


@pytest.mark.parametrize("name", STATUSES)
def test_what_goes_wrong_has_a_status(parents: ParentPool, root: Path, name: str) -> None:
    body, status = STATUSES[name]
    assert judge(parents, root, body).status == status


@pytest.mark.parametrize("flag", ["", "@direct"])
def test_examples_in_triton_are_right(tmp_path: Path, flag: str) -> None:
    suite = only_tasks(load_suite("demo-small"), ["rms_norm", "window_partition", "gelu_tanh"])
    words = ["eager", "null", "inductor", f"{EXAMPLES / 'triton'}{flag}"]
    entries = [parse_candidate(word, suite.tasks) for word in words]
    settings = RunSettings(QUICK, sandbox=find_sandbox().name)
    for trial in run_suite(suite, entries, settings, tmp_path / "run"):
        assert trial.status == "ok", (trial.graph, trial.candidate, trial.error)
        assert trial.smallest_t is not None and trial.smallest_t <= -5, (trial.graph, trial)
