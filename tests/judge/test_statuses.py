"""Whatever a pass does, its trial ends with a status, and the next trial is judged as usual."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passnet.graph.inputs import make_inputs
from passnet.graph.parse import parse_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.timing.clock import _Interleaving
from passnet.judge.timing.measurement import Measurement
from passnet.judge.timing.timed_worker import TimedWorker
from passnet.judge.trial import Trial
from passnet.passes.folder import LIST_FILE
from passnet.suite.suite import SuiteGraph
from tests.judge.folders import GOOD, PROGRAM, small_graph, some_slow, write_passes

pytestmark = pytest.mark.xdist_group("statuses")

QUICK = JudgeSettings(
    timing=TimingPlan(seconds=0.02, min_rounds=3, max_rounds=3, audit_share=0.5),
    limits=WorkerLimits(4096),
    compile_timeout_s=5,
    call_timeout_s=10,
    self_tolerance=1e9,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that candidates can see for as long as their parent of workers lives."""
    return tmp_path_factory.mktemp("passes")


@pytest.fixture
def tmp_path(root: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=root))


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


@pytest.mark.parametrize("claim", some_slow(BODIES, 1))
def test_a_bad_replacement_is_a_status(claim: str, parents: ParentPool, tmp_path: Path) -> None:
    status, body = BODIES[claim]
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == status, trial
    assert trial.speedup is None and trial.error


def test_a_pass_that_cannot_be_traced_leaves_the_others_of_its_folder(
    parents: ParentPool, tmp_path: Path
) -> None:
    folder = write_passes(tmp_path / "bad", GOOD)
    good = (folder / "Fuse.py").read_text()
    broken = good.replace("return torch.relu(x + y)", "return x if x.sum() > 0 else y", 1)
    (folder / "Broken.py").write_text(broken)
    (folder / LIST_FILE).write_text('["Broken", "Fuse"]')
    trial = judge(parents, folder)
    assert (trial.status, trial.matches) == ("ok", {"Broken": 0, "Fuse": 1}), trial
    (folder / LIST_FILE).write_text('["Broken"]')
    trial = judge(parents, folder)
    assert trial.status == "compile_error" and "tracing Broken.pattern" in (trial.error or "")


def test_with_any_strides_another_memory_order_is_judged_by_its_values(
    parents: ParentPool, tmp_path: Path
) -> None:
    free = replace(QUICK, strides="any")
    _, body = BODIES["another memory order is a wrong shape"]
    trial = judge(parents, write_passes(tmp_path / "bad", body), settings=free)
    assert (trial.status, trial.smallest_t) == ("ok", -10) and trial.speedup, trial
    wrong = body.replace("relu(x + y).t()", "relu(x - y).t()")
    trial = judge(parents, write_passes(tmp_path / "wrong", wrong), settings=free)
    assert trial.status == "ok" and trial.smallest_t != -10, trial


@pytest.mark.slow
def test_the_same_holds_behind_torch_compile(parents: ParentPool, tmp_path: Path) -> None:
    for name, claim in enumerate(BODIES):
        status, body = BODIES[claim]
        if status in ("crash", "compile_error", "runtime_error"):
            trial = judge(parents, write_passes(tmp_path / str(name), body), "compiled")
            assert trial.status == status, (claim, trial)


def test_a_crash_says_what_the_process_last_wrote(parents: ParentPool, tmp_path: Path) -> None:
    body = "import os\ndef replacement(x, y):\n    os.write(2, b'my last words')\n    os._exit(3)\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert "my last words" in (trial.error or "") and "code 3" in (trial.error or "")


def test_a_disk_that_is_full_is_named(parents: ParentPool, tmp_path: Path) -> None:
    body = "def replacement(x, y):\n    raise ValueError('x') from OSError(28, '', '/tmp/kernel')\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == "runtime_error"
    wanted = "/tmp/kernel: No space left on device; make room on the disk"
    assert (trial.error or "").endswith(wanted)


def test_a_pattern_that_matches_nothing_is_no_match_with_the_nearest_miss(
    parents: ParentPool, tmp_path: Path
) -> None:
    folder = write_passes(tmp_path / "bad", GOOD)
    path = folder / "Fuse.py"
    path.write_text(path.read_text().replace("torch.relu(x + y)", "torch.sigmoid(x + y)", 1))
    trial = judge(parents, folder)
    assert trial.status == "no_match"
    assert "expected torch.sigmoid, found torch.relu" in (trial.error or "")


WRONG_VALUES = {
    "NaN": "torch.full_like(x, float('nan'))",
    "an identity": "x.clone()",
    "half of the work": "torch.cat([torch.relu(x + y)[:32], x[32:]])",
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_wrong_values_are_ok_in_form_and_far_from_correct(
    name: str, parents: ParentPool, tmp_path: Path
) -> None:
    body = f"def replacement(x, y):\n    return {WRONG_VALUES[name]}\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == "ok"
    # At t = 0 both tolerances are 1, so that even zeros agree; below, nothing of this may.
    assert trial.smallest_t is None or trial.smallest_t >= 0


def test_a_slightly_wrong_value_has_the_level_it_deserves(
    parents: ParentPool, tmp_path: Path
) -> None:
    body = "def replacement(x, y):\n    return torch.relu(x + y) * (1 + 1e-4)\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.smallest_t == -3


def test_a_write_into_an_input_is_wrong_values(parents: ParentPool, tmp_path: Path) -> None:
    body = "def replacement(x, y):\n    x.add_(y)\n    return torch.relu(x)\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == "ok" and trial.smallest_t is None
    assert "left with other values" in (trial.error or "")


@pytest.mark.parametrize("call", ["direct", "guarded"])
def test_output_that_is_right_only_at_first_is_wrong(
    call: str, parents: ParentPool, tmp_path: Path
) -> None:
    body = (
        "calls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        "    return torch.relu(x + y) if len(calls) < 5 else torch.empty_like(x).fill_(1e9)\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body), call)
    assert trial.smallest_t is None


def test_a_graph_that_writes_into_its_input_gets_it_anew_for_every_timed_call(
    parents: ParentPool,
) -> None:
    program = PROGRAM.replace("in_0 + in_1", "in_0.mul_(in_1)")
    graph = Graph(parse_program(program), small_graph().graph.tensors)
    item = SuiteGraph("writes", "writes-0", graph)
    candidates = [
        Candidate("eager", "eager", None, "direct"),
        Candidate("null", "null"),
        Candidate("null@guarded", "null", None, "guarded"),
    ]
    for trial in judge_graph(parents, item, candidates, QUICK):
        assert (trial.status, trial.smallest_t) == ("ok", -10), trial


@pytest.mark.parametrize(("num_workers", "status"), [(1, "ok"), (2, "cheat")])
def test_a_worker_that_stops_elsewhere_is_tried_once_more(
    num_workers: int, status: str, parents: ParentPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[TimedWorker] = []

    def stops_elsewhere(worker: TimedWorker, offsets: object) -> bool:
        if worker.worker._channel in references:
            return False
        if worker not in seen:
            seen.append(worker)
        return seen.index(worker) < num_workers

    references: list[object] = []
    measure = _Interleaving.measure

    def noting(rounds: _Interleaving) -> Measurement:
        references.append(rounds._workers[0].worker._channel)
        return measure(rounds)

    monkeypatch.setattr(_Interleaving, "measure", noting)
    monkeypatch.setattr(TimedWorker, "stops_elsewhere", stops_elsewhere)
    candidate = Candidate("eager", "eager", None, "direct")
    [trial] = judge_graph(parents, small_graph(), [candidate], QUICK)
    assert trial.status == status and len(seen) == 2


LATE = {
    "an exit": ("crash", "os._exit(1)"),
    "an endless loop": ("timeout", "while True: pass"),
    "an exception": ("runtime_error", "raise KeyError('lost')"),
}


@pytest.mark.parametrize("name", some_slow(["an exception", "an exit", "an endless loop"], 1))
def test_what_goes_wrong_in_a_timed_call_is_a_status_too(
    name: str, parents: ParentPool, tmp_path: Path
) -> None:
    status, action = LATE[name]
    body = (
        "import os\ncalls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        f"    if len(calls) > 6:\n        {action}\n    return torch.relu(x + y)\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == status, trial
    assert trial.speedup is None and trial.error


PROVEN = {
    "late_write": (
        "import threading, time\n"
        "def finish(out, x, y):\n"
        "    out.copy_(torch.relu(x + y) - 10)\n"
        "    for _ in range(10):\n        time.sleep(0.003)\n        out += 1\n"
        "calls = []\n"
        "def replacement(x, y):\n"
        "    calls.append(1)\n"
        "    if len(calls) < 5:\n        return torch.relu(x + y)\n"
        "    out = torch.empty_like(x)\n"
        "    threading.Thread(target=finish, args=(out, x, y)).start()\n"
        "    return out\n"
    ),
    "static_buffer": (
        "buffer = torch.empty(64, 64)\n"
        "def replacement(x, y):\n"
        "    return torch.clamp(x + y, min=0, out=buffer)\n"
    ),
}


@pytest.mark.parametrize("name", PROVEN)
def test_a_proven_cheat_is_named_and_scores_as_one(
    name: str, parents: ParentPool, tmp_path: Path
) -> None:
    trial = judge(parents, write_passes(tmp_path / "bad", PROVEN[name]))
    assert trial.status == "cheat", trial
    assert name in [item.name for item in trial.findings if item.weight == "reject"]
    assert trial.speedup is None and trial.sandbox == parents.sandbox.name


CACHED = {
    "by the address of its input": "x.data_ptr()",
    "by the shape of its input": "tuple(x.shape)",
    "for good": "0",
}


@pytest.mark.parametrize("name", CACHED)
def test_a_remembered_output_is_named(name: str, parents: ParentPool, tmp_path: Path) -> None:
    body = (
        "known = {}\nnumber = [0]\ndef replacement(x, y):\n"
        "    number[0] += 1\n"
        "    if number[0] <= 4:\n        return torch.relu(x + y)\n"
        f"    key = {CACHED[name]}\n"
        "    if key not in known:\n        known[key] = torch.relu(x + y)\n"
        "    return known[key].clone()\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    names = {finding.name for finding in trial.findings}
    assert trial.status == "cheat" and names & {"replayed_output", "constant_output"}, trial


def test_a_constant_is_named(parents: ParentPool, tmp_path: Path) -> None:
    body = "def replacement(x, y):\n    return torch.full_like(x, 0.125)\n"
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.status == "cheat" and "constant_output" in (trial.error or ""), trial


def test_a_weight_that_is_kept_is_named(parents: ParentPool, tmp_path: Path) -> None:
    body = (
        "kept = []\ndef replacement(x, y):\n    kept.append(y.clone()) if not kept else None\n"
        "    return torch.relu(x + kept[0])\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    (found,) = [item for item in trial.findings if item.name == "stale_argument"]
    assert found.weight == "flag" and "argument 1" in found.evidence, trial


def test_half_of_the_work_in_timed_calls_is_wrong(parents: ParentPool, tmp_path: Path) -> None:
    body = (
        "calls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        "    if len(calls) < 5:\n        return torch.relu(x + y)\n"
        "    out = torch.full_like(x, 1e6)\n"
        "    out[:32] = torch.relu(x[:32] + y[:32])\n    return out\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    assert trial.smallest_t is None and "output 0" in (trial.error or "")


def test_an_output_that_is_an_argument_is_wrong_where_the_reference_copies(
    parents: ParentPool,
) -> None:
    program = PROGRAM.replace("torch.relu(tmp_0)", "tmp_0.clone()")
    copies = SuiteGraph("a", "a-0", Graph(parse_program(program), small_graph().graph.tensors))
    [trial] = judge_graph(parents, copies, [Candidate("eager", "eager", None, "direct")], QUICK)
    assert trial.smallest_t == -10 and not trial.findings


def test_a_thread_and_a_process_beside_the_worker_are_named(
    parents: ParentPool, tmp_path: Path
) -> None:
    body = (
        "import threading, time, os\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "if os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\n"
        "def replacement(x, y):\n    return torch.relu(x + y)\n"
    )
    trial = judge(parents, write_passes(tmp_path / "bad", body))
    names = {item.name for item in trial.findings if item.weight != "note"}
    wanted = {"background_thread", "thread", "process"}  # the last two by their code's text
    if parents.sandbox.name != "none":
        wanted |= {"background_process", "disturbs_others"}
        assert trial.status == "cheat"
    assert names == wanted


def test_a_failing_reference_is_no_fault_of_the_candidate(parents: ParentPool) -> None:
    item = small_graph()
    broken = item.graph.tensors[1]
    tensors = (item.graph.tensors[0], type(broken)("in_1", (3, 5), "float32"))
    graph = type(item.graph)(item.graph.program, tensors)
    made = type(item)(item.task, item.name, graph)
    [trial] = judge_graph(parents, made, [Candidate("eager", "eager", None, "direct")], QUICK)
    assert trial.status == "reference_error" and "The size of tensor a" in (trial.error or "")


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
    ]
    for trial in judge_graph(parents, small_graph(), candidates, patient):
        assert (trial.status, trial.smallest_t) == ("ok", -10), trial


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
    graph = SuiteGraph("round", "round-0", Graph(parse_program(ROUNDS), (*specs, number)))
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
    assert all((trial.load_s or 60) < 2 and (trial.first_call_s or 60) < 2 for trial in trials[1:])


LOOKS_UP = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor):
        tmp_0 = torch.abs(in_0)
        tmp_1 = tmp_0.to(torch.int64)
        tmp_2 = torch.arange(100)
        tmp_3 = tmp_2[tmp_1]
        return (tmp_3,)
"""


def test_a_graph_that_refuses_extreme_inputs_is_judged_on_the_others(parents: ParentPool) -> None:
    spec = TensorSpec("in_0", (64, 64), "float32", mean=0.0, std=1.0)
    graph = Graph(parse_program(LOOKS_UP), (spec,))
    (extreme,) = make_inputs(graph, "extreme", 2)
    assert np.max(np.abs(extreme)) > 100  # out of range
    candidates = [Candidate("eager", "eager", call="direct")]
    (trial,) = judge_graph(parents, SuiteGraph("look-up", "look-up-0", graph), candidates, QUICK)
    assert (trial.status, trial.smallest_t) == ("ok", -10), trial.error


@pytest.mark.parametrize(("function", "names"), [("zeros_like", ["nothing_varies"]), ("relu", [])])
def test_a_graph_on_which_nothing_varies_says_so_in_its_trials(
    parents: ParentPool, function: str, names: list[str]
) -> None:
    program = parse_program(PROGRAM.replace("torch.relu", f"torch.{function}"))
    graph = SuiteGraph("add_relu", "add_relu-0", Graph(program, small_graph().graph.tensors))
    (trial,) = judge_graph(parents, graph, [Candidate("eager", "eager", call="direct")], QUICK)
    assert trial.status == "ok", trial.error
    assert [note.name for note in trial.findings if note.weight == "note"] == names


REMEMBERS = """
answers = []

def replacement(x, y):
    if not answers:
        answers.append(torch.relu(x + y))
    return answers[0].clone()
"""


@pytest.mark.slow
def test_an_answer_remembered_from_whole_numbers_of_one_value_is_wrong(
    parents: ParentPool, tmp_path: Path
) -> None:
    ones = tuple(TensorSpec(name, (64, 64), "int64", data=(1,) * 4096) for name in ("in_0", "in_1"))
    graph = SuiteGraph("add_relu", "add_relu-0", Graph(parse_program(PROGRAM), ones))
    folders = [
        write_passes(tmp_path / name, body) for name, body in (("a", REMEMBERS), ("b", GOOD))
    ]
    candidates = [
        Candidate(folder.name, "passes", str(folder), "direct", root=str(tmp_path.parent))
        for folder in folders
    ]
    remembered, good = judge_graph(parents, graph, candidates, QUICK)
    assert remembered.status == "cheat" and "constant_output" in (remembered.error or "")
    assert (good.status, good.smallest_t) == ("ok", -10), good.error


VIEW = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        s = x + y
        z = torch.relu(s)
        v = y.transpose(0, 1)
        return (z, v)
"""

COPIED_VIEW = """
import torch

def pattern(y):
    return y.transpose(0, 1)

def replacement_args(y):
    return (y,)

def replacement(y):
    return y.transpose(0, 1).clone()

def replacement_func():
    return replacement
"""


@pytest.mark.parametrize("timing", [QUICK.timing, None], ids=["timed", "untimed"])
def test_a_copy_of_what_shares_memory_in_the_reference_is_wrong(
    timing: TimingPlan | None, tmp_path: Path
) -> None:
    specs = tuple(TensorSpec(name, (8, 12), "float32", mean=0.0, std=1.0) for name in "xy")
    graph = SuiteGraph("view", "view-0", Graph(parse_program(VIEW), specs))
    folder = write_passes(tmp_path / "copied", "")
    (folder / "Fuse.py").write_text(COPIED_VIEW)
    good = write_passes(tmp_path / "good", GOOD)
    candidates = [
        Candidate(name, "passes", str(path), "direct", root=str(tmp_path.parent))
        for name, path in (("copied", folder), ("good", good))
    ]
    with ParentPool() as parents:
        settings = replace(QUICK, timing=timing)
        copied, kept = judge_graph(parents, graph, candidates, settings)
    assert (kept.status, kept.smallest_t) == ("ok", -10), kept.error
    assert (copied.status, copied.smallest_t) == ("ok", None)
    assert copied.error == "argument 1 and output 1 share no memory, unlike in the reference"
