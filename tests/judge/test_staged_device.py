"""A device whose memory the judge cannot reach: the protocol of a GPU, on tensors of the CPU."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.protocol.device import STAGED
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.task import TaskGraph
from passnet.judge.timing.measurement_findings import late_work
from passnet.judge.trial import Trial
from tests.judge.folders import GOOD, small_graph, some_slow, write_passes

pytestmark = pytest.mark.xdist_group("staged")

QUICK = JudgeSettings(
    device=STAGED,
    timing=TimingPlan(seconds=0.05, min_rounds=3, max_rounds=4, audit_share=0.5, keeps_awake=False),
    limits=WorkerLimits(4096),
    compile_timeout_s=20,
    call_timeout_s=10,
    self_tolerance=1e9,
)

STRIDED = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 + in_1
        tmp_1 = tmp_0.transpose(0, 1)
        tmp_2 = in_0[3]
        tmp_3 = in_1.mul_(2.0)
        return (tmp_1, tmp_2, tmp_3)
"""


@pytest.fixture(scope="module")
def parents() -> Iterator[ParentPool]:
    with ParentPool(sandbox=find_sandbox(), device=STAGED) as made:
        yield made


def judge(parents: ParentPool, root: Path, body: str) -> Trial:
    """The trial of a replacement on the device."""
    folder = write_passes(Path(tempfile.mkdtemp(dir=root)), body)
    candidate = Candidate("mine", "passes", str(folder), "direct", root=str(root))
    return calm(parents, small_graph(), candidate)


def calm(parents: ParentPool, item: TaskGraph, candidate: Candidate) -> Trial:
    """Return a trial that other work on the machine did not disturb."""
    for _ in range(3):
        (trial,) = judge_graph(parents, item, [candidate], QUICK)
        if "early_work" not in {found.name for found in trial.findings}:
            break
    return trial


def test_a_right_pass_is_measured_cold_and_hot(parents: ParentPool, root: Path) -> None:
    trial = judge(parents, root, GOOD)
    assert (trial.status, trial.smallest_t, trial.findings) == ("ok", -10, ()), trial.error
    assert trial.candidate_ms is not None and trial.reference_ms is not None
    assert trial.candidate_hot_ms is not None and trial.candidate_hot_ms > 0
    assert trial.reference_hot_ms is not None and trial.reference_hot_ms > 0


def test_strided_outputs_views_and_written_arguments_come_back(parents: ParentPool) -> None:
    specs = tuple(
        TensorSpec(name, (8, 16), "float32", mean=0.0, std=1.0) for name in ("in_0", "in_1")
    )
    graph = Graph(parse_program(STRIDED), specs)
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", seed) for seed in range(2)])
    with LoadedWorker(
        parents.reference(),
        problem,
        REFERENCE,
        JudgeSettings(
            device=STAGED, limits=WorkerLimits(1024), compile_timeout_s=30, call_timeout_s=10
        ),
    ) as subject:
        for number in range(2):
            x, y = make_inputs(graph, "fresh", number)
            assert not isinstance(x, int) and not isinstance(y, int)
            outcome = subject.outcome(subject.run(number), number)
            for actual, expected in zip(outcome.outputs, ((x + y).T, x[3], 2 * y), strict=True):
                np.testing.assert_array_equal(actual, expected)
            np.testing.assert_array_equal(outcome.changed[1], 2 * y)
            assert list(outcome.changed) == [1]
            subject.restore(number)
    item = TaskGraph("strided", "strided-0", graph)
    trial = calm(parents, item, Candidate("eager", "eager", call="direct"))
    assert (trial.status, trial.smallest_t, trial.findings) == ("ok", -10, ()), trial.error


BODIES = {
    "an output that is wrong in timed calls only": (
        "wrong",
        "calls = []\n"
        "def replacement(x, y):\n"
        "    calls.append(1)\n"
        "    out = torch.relu(x + y)\n"
        "    return out if len(calls) < 9 else 1e6 - out\n",
        "of a timed call is wrong",
    ),
    "an argument that is left with other values": (
        "wrong",
        "calls = []\n"
        "def replacement(x, y):\n"
        "    calls.append(1)\n"
        "    out = torch.relu(x + y)\n"
        "    if len(calls) > 5:\n"
        "        x.add_(1)\n"
        "    return out\n",
        "argument 0 is left with other values",
    ),
    "an output that the next call writes to": (
        "cheat",
        "buffer = torch.empty(64, 64)\n"
        "def replacement(x, y):\n"
        "    return torch.clamp(torch.add(x, y, out=buffer), min=0, out=buffer).view(64, 64)\n",
        "static_buffer",
    ),
    "a thread that finishes later": (
        "cheat",
        "import threading, time\n"
        "def late(x, y, out):\n"
        "    for _ in range(10):\n"
        "        time.sleep(0.003)\n"
        "        out *= 1.0000001\n"
        "def replacement(x, y):\n"
        "    out = torch.relu(x + y)\n"
        "    threading.Thread(target=late, args=(x, y, out)).start()\n"
        "    return out\n",
        "late_write",
    ),
    "work that is put off until the outputs are delivered": (
        "cheat",
        "import time\n"
        "import passnet.judge.worker.worker as worker\n"
        "copy, todo = worker.copy_out, []\n"
        "def copy_out(outputs, memory):\n"
        "    while todo:\n"
        "        x, y, out = todo.pop()\n"
        "        end = time.perf_counter() + 0.002\n"
        "        while time.perf_counter() < end:\n"
        "            out.copy_(torch.relu(x + y))\n"
        "    copy(outputs, memory)\n"
        "worker.copy_out = copy_out\n"
        "def replacement(x, y):\n"
        "    out = torch.empty_like(x)\n"
        "    todo.append((x, y, out))\n"
        "    return out\n",
        "late_work",
    ),
}


@pytest.mark.parametrize("name", some_slow(BODIES, 1))
def test_what_is_wrong_on_a_device_is_found(parents: ParentPool, root: Path, name: str) -> None:
    status, body, words = BODIES[name]
    trial = judge(parents, root, "import torch\n" + body)
    seen = "wrong" if trial.status == "ok" and trial.smallest_t is None else trial.status
    assert seen == status, (trial.status, trial.smallest_t, trial.error)
    names = {found.name for found in trial.findings}
    assert words in names or words in (trial.error or ""), (names, trial.error)


def test_late_work_is_more_than_a_quarter_and_five_microseconds() -> None:
    assert not late_work([], [])
    assert not late_work([0.012] * 40, [0.010] * 40)
    assert not late_work([1.2] * 40, [1.0] * 40)
    assert not late_work([0.020] * 5, [0.010] * 5)  # too few to tell
    (found,) = late_work([0.020] * 40, [0.010] * 40)
    assert found.weight == "reject" and "20.0 us" in found.evidence
