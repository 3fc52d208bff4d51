"""Whatever a pass does, its trial ends with a status, and the next trial is judged as usual."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from passnet.judge.candidate import Candidate
from passnet.judge.clock import TimingPlan
from passnet.judge.process import WorkerParent
from passnet.judge.trial import JudgeSettings, Trial, judge_graph
from tests.judge.folders import GOOD, small_graph, write_passes

QUICK = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3),
    memory_mib=1024,
    compile_timeout_s=10,
    call_timeout_s=3,
    self_tolerance=1e9,
)


@pytest.fixture(scope="module")
def parent() -> Iterator[WorkerParent]:
    with WorkerParent() as made:
        yield made


def judge(parent: WorkerParent, folder: Path, call: str = "direct") -> Trial:
    """The trial of a pass folder, with a good candidate beside it that must come out ok."""
    good = write_passes(folder.parent / "good", GOOD)
    candidates = [
        Candidate("bad", "passes", str(folder), call),  # type: ignore[arg-type]
        Candidate("good", "passes", str(good), "direct"),
    ]
    bad, beside = judge_graph(parent, small_graph(), candidates, QUICK)
    assert beside.status == "ok" and beside.smallest_t == -10, beside
    return bad


BODIES = {
    "a segmentation fault is a crash": (
        "crash",
        "import ctypes\ndef replacement(x, y):\n    ctypes.string_at(0)\n",
    ),
    "an exit with code 0 is a crash": (
        "crash",
        "import os\ndef replacement(x, y):\n    os._exit(0)\n",
    ),
    "sys.exit is a crash": (
        "crash",
        "import sys\ndef replacement(x, y):\n    sys.exit(0)\n",
    ),
    "a kill of itself is a crash": (
        "crash",
        "import os, signal\ndef replacement(x, y):\n    os.kill(os.getpid(), signal.SIGKILL)\n",
    ),
    "an endless loop is a time-out": (
        "timeout",
        "def replacement(x, y):\n    while True:\n        pass\n",
    ),
    "exhausted memory is out_of_memory": (
        "out_of_memory",
        "def replacement(x, y):\n    return torch.ones(2**33)\n",
    ),
    "exhausted Python memory is out_of_memory": (
        "out_of_memory",
        "def replacement(x, y):\n    return bytearray(2**34)\n",
    ),
    "an exception in the replacement is a runtime error": (
        "runtime_error",
        "def replacement(x, y):\n    raise KeyError('lost')\n",
    ),
    "an exception at import is a compile error": (
        "compile_error",
        "raise RuntimeError('no kernel')\n",
    ),
    "a kernel that does not compile is a compile error": (
        "compile_error",
        "from passnet.passes import cpp\nk = cpp.kernel('int f( {', 'f', 'p')\n",
    ),
    "a missing output is a wrong shape": (
        "wrong_shape",
        "def replacement(x, y):\n    return torch.relu(x + y)[:1]\n",
    ),
    "another memory order is a wrong shape": (
        "wrong_shape",
        "def replacement(x, y):\n    return torch.relu(x + y).t().contiguous().t()\n",
    ),
    "another dtype is a wrong dtype": (
        "wrong_dtype",
        "def replacement(x, y):\n    return torch.relu(x + y).double()\n",
    ),
    "a tensor subclass is a wrong dtype": (
        "wrong_dtype",
        "class Lazy(torch.Tensor):\n    pass\n"
        "def replacement(x, y):\n    return torch.relu(x + y).as_subclass(Lazy)\n",
    ),
    "no tensor at all is a wrong dtype": (
        "wrong_dtype",
        "def replacement(x, y):\n    return 'fast'\n",
    ),
}


@pytest.mark.parametrize("claim", BODIES)
def test_a_bad_replacement_is_a_status(claim: str, parent: WorkerParent, tmp_path: Path) -> None:
    status, body = BODIES[claim]
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert trial.status == status, trial
    assert trial.speedup is None and trial.error


def test_the_same_holds_behind_torch_compile(parent: WorkerParent, tmp_path: Path) -> None:
    for name, claim in enumerate(BODIES):
        status, body = BODIES[claim]
        if status in ("crash", "compile_error", "runtime_error"):
            trial = judge(parent, write_passes(tmp_path / str(name), body), "compiled")
            assert trial.status == status, (claim, trial)


def test_a_crash_says_what_the_process_last_wrote(parent: WorkerParent, tmp_path: Path) -> None:
    body = "import os\ndef replacement(x, y):\n    os.write(2, b'my last words')\n    os._exit(3)\n"
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert "my last words" in (trial.error or "") and "code 3" in (trial.error or "")


def test_a_pattern_that_matches_nothing_is_no_match_with_the_nearest_miss(
    parent: WorkerParent, tmp_path: Path
) -> None:
    folder = write_passes(tmp_path / "bad", GOOD)
    path = folder / "Fuse.py"
    path.write_text(path.read_text().replace("torch.relu(x + y)", "torch.sigmoid(x + y)", 1))
    trial = judge(parent, folder)
    assert trial.status == "no_match"
    assert "expected torch.sigmoid, found torch.relu" in (trial.error or "")


WRONG_VALUES = {
    "a constant": "torch.zeros_like(x)",
    "NaN": "torch.full_like(x, float('nan'))",
    "an identity": "x.clone()",
    "half of the work": "torch.cat([torch.relu(x + y)[:32], x[32:]])",
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_wrong_values_are_ok_in_form_and_far_from_correct(
    name: str, parent: WorkerParent, tmp_path: Path
) -> None:
    body = f"def replacement(x, y):\n    return {WRONG_VALUES[name]}\n"
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert trial.status == "ok"
    # At t = 0 both tolerances are 1, so that even zeros agree; below, nothing of this may.
    assert trial.smallest_t is None or trial.smallest_t >= 0


def test_a_slightly_wrong_value_has_the_level_it_deserves(
    parent: WorkerParent, tmp_path: Path
) -> None:
    body = "def replacement(x, y):\n    return torch.relu(x + y) * (1 + 1e-4)\n"
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert trial.smallest_t == -3


def test_a_write_into_an_input_is_wrong_values(parent: WorkerParent, tmp_path: Path) -> None:
    body = "def replacement(x, y):\n    x.add_(y)\n    return torch.relu(x)\n"
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert trial.status == "ok" and trial.smallest_t is None
    assert "left with other values" in (trial.error or "")


def test_output_that_is_right_only_at_first_is_wrong(parent: WorkerParent, tmp_path: Path) -> None:
    body = (
        "calls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        "    return torch.relu(x + y) if len(calls) < 3 else torch.empty_like(x).fill_(1e9)\n"
    )
    trial = judge(parent, write_passes(tmp_path / "bad", body))
    assert trial.smallest_t is None


def test_a_failing_reference_is_no_fault_of_the_candidate(parent: WorkerParent) -> None:
    item = small_graph()
    broken = item.graph.tensors[1]
    tensors = (item.graph.tensors[0], type(broken)("in_1", (3, 5), "float32"))
    graph = type(item.graph)(item.graph.program, tensors)
    made = type(item)(item.task, item.name, graph)
    [trial] = judge_graph(parent, made, [Candidate("eager", "eager", None, "direct")], QUICK)
    assert trial.status == "reference_error" and "The size of tensor a" in (trial.error or "")


def test_the_baselines_run_and_agree(parent: WorkerParent) -> None:
    candidates = [
        Candidate("eager", "eager", None, "direct"),
        Candidate("null", "null"),
        Candidate("null@direct", "null", None, "direct"),
    ]
    for trial in judge_graph(parent, small_graph(), candidates, QUICK):
        assert trial.status == "ok" and trial.smallest_t == -10, trial
        assert trial.speedup_low is not None and trial.speedup_high is not None
        assert trial.speedup_low <= (trial.speedup or 0) <= trial.speedup_high
        assert len(trial.candidate_rounds_ms) == 3
