"""Whatever a pass does, its trial ends with a status, and the next trial is judged as usual."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.task import TaskGraph
from passnet.passes.folder import LIST_FILE
from tests.judge.folders import GOOD, PROGRAM, small_graph, some_slow, write_passes
from tests.judge.trials import QUICK, judge

pytestmark = pytest.mark.xdist_group("statuses")

BODIES = {
    "a segmentation fault is a crash": (
        "crash",
        "import ctypes\ndef replacement(x, y):\n    ctypes.string_at(0)\n",
    ),
    "an exit with code 0 is a crash": (
        "crash",
        "import os\ndef replacement(x, y):\n    os._exit(0)\n",
    ),
    "sys.exit is a crash": ("crash", "import sys\ndef replacement(x, y):\n    sys.exit(0)\n"),
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
def test_a_bad_replacement_is_a_status(claim: str, parents: ParentPool, place: Path) -> None:
    status, body = BODIES[claim]
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == status, trial
    assert trial.speedup is None and trial.error


def test_a_pass_that_cannot_be_traced_leaves_the_others_of_its_folder(
    parents: ParentPool, place: Path
) -> None:
    folder = write_passes(place / "bad", GOOD)
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
    parents: ParentPool, place: Path
) -> None:
    free = replace(QUICK, strides="any")
    _, body = BODIES["another memory order is a wrong shape"]
    trial = judge(parents, write_passes(place / "bad", body), settings=free)
    assert (trial.status, trial.smallest_t) == ("ok", -10) and trial.speedup, trial
    wrong = body.replace("relu(x + y).t()", "relu(x - y).t()")
    trial = judge(parents, write_passes(place / "wrong", wrong), settings=free)
    assert trial.status == "ok" and trial.smallest_t != -10, trial


@pytest.mark.slow
def test_the_same_holds_behind_torch_compile(parents: ParentPool, place: Path) -> None:
    for name, claim in enumerate(BODIES):
        status, body = BODIES[claim]
        if status in ("crash", "compile_error", "runtime_error"):
            trial = judge(parents, write_passes(place / str(name), body), "compiled")
            assert trial.status == status, (claim, trial)


def test_a_crash_says_what_the_process_last_wrote(parents: ParentPool, place: Path) -> None:
    body = "import os\ndef replacement(x, y):\n    os.write(2, b'my last words')\n    os._exit(3)\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert "my last words" in (trial.error or "") and "code 3" in (trial.error or "")


def test_a_disk_that_is_full_is_named(parents: ParentPool, place: Path) -> None:
    body = "def replacement(x, y):\n    raise ValueError('x') from OSError(28, '', '/tmp/kernel')\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == "runtime_error"
    wanted = "/tmp/kernel: No space left on device; make room on the disk"
    assert (trial.error or "").endswith(wanted)


def test_a_pattern_that_matches_nothing_is_no_match_with_the_nearest_miss(
    parents: ParentPool, place: Path
) -> None:
    folder = write_passes(place / "bad", GOOD)
    path = folder / "Fuse.py"
    path.write_text(path.read_text().replace("torch.relu(x + y)", "torch.sigmoid(x + y)", 1))
    trial = judge(parents, folder)
    assert trial.status == "no_match"
    assert "expected torch.sigmoid, found torch.relu" in (trial.error or "")


LATE = {
    "an exit": ("crash", "os._exit(1)"),
    "an endless loop": ("timeout", "while True: pass"),
    "an exception": ("runtime_error", "raise KeyError('lost')"),
}


@pytest.mark.parametrize("name", some_slow(["an exception", "an exit", "an endless loop"], 1))
def test_what_goes_wrong_in_a_timed_call_is_a_status_too(
    name: str, parents: ParentPool, place: Path
) -> None:
    status, action = LATE[name]
    body = (
        "import os\ncalls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        f"    if len(calls) > 6:\n        {action}\n    return torch.relu(x + y)\n"
    )
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == status, trial
    assert trial.speedup is None and trial.error


def test_a_thread_and_a_process_beside_the_worker_are_named(
    parents: ParentPool, place: Path
) -> None:
    body = (
        "import threading, time, os\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "if os.fork() == 0:\n    time.sleep(60)\n    os._exit(0)\n"
        "def replacement(x, y):\n    return torch.relu(x + y)\n"
    )
    trial = judge(parents, write_passes(place / "bad", body))
    names = {item.name for item in trial.findings if item.weight != "note"}
    wanted = {"background_thread", "thread", "process"}  # the last two by their code's text
    if parents.sandbox.name != "none":
        wanted.add("background_process")  # it was ended before it could be of use
    assert names == wanted and trial.status == "ok"


def test_a_failing_reference_is_no_fault_of_the_candidate(parents: ParentPool) -> None:
    item = small_graph()
    broken = item.graph.tensors[1]
    tensors = (item.graph.tensors[0], type(broken)("in_1", (3, 5), "float32"))
    graph = type(item.graph)(item.graph.program, tensors)
    made = type(item)(item.task, item.name, graph)
    [trial] = judge_graph(parents, made, [Candidate("eager", "eager", None, "direct")], QUICK)
    assert trial.status == "reference_error" and "The size of tensor a" in (trial.error or "")


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
    (trial,) = judge_graph(parents, TaskGraph("look-up", "look-up-0", graph), candidates, QUICK)
    assert (trial.status, trial.smallest_t) == ("ok", -10), trial.error


@pytest.mark.parametrize(("function", "names"), [("zeros_like", ["nothing_varies"]), ("relu", [])])
def test_a_graph_on_which_nothing_varies_says_so_in_its_trials(
    parents: ParentPool, function: str, names: list[str]
) -> None:
    program = parse_program(PROGRAM.replace("torch.relu", f"torch.{function}"))
    graph = TaskGraph("add_relu", "add_relu-0", Graph(program, small_graph().graph.tensors))
    (trial,) = judge_graph(parents, graph, [Candidate("eager", "eager", call="direct")], QUICK)
    assert trial.status == "ok", trial.error
    assert [note.name for note in trial.findings if note.weight == "note"] == names
