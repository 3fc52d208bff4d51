"""Wrong values are seen in whatever call they come, and named where their cause is known."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.settings import TimingPlan
from passnet.judge.task import TaskGraph
from tests.judge.folders import GOOD, PROGRAM, small_graph, write_passes
from tests.judge.trials import QUICK, judge

pytestmark = pytest.mark.xdist_group("statuses")

WRONG_VALUES = {
    "NaN": "torch.full_like(x, float('nan'))",
    "an identity": "x.clone()",
    "half of the work": "torch.cat([torch.relu(x + y)[:32], x[32:]])",
}


@pytest.mark.parametrize("name", WRONG_VALUES)
def test_wrong_values_are_ok_in_form_and_far_from_correct(
    name: str, parents: ParentPool, place: Path
) -> None:
    body = f"def replacement(x, y):\n    return {WRONG_VALUES[name]}\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == "ok"
    # At t = 0 both tolerances are 1, so that even zeros agree; below, nothing of this may.
    assert trial.smallest_t is None or trial.smallest_t >= 0


def test_a_slightly_wrong_value_has_the_level_it_deserves(parents: ParentPool, place: Path) -> None:
    body = "def replacement(x, y):\n    return torch.relu(x + y) * (1 + 1e-4)\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.smallest_t == -3
    text = (
        r"output 0 is wrong at \[\d+, \d+\]: [\d.]+, too large by \d+ times the tolerance at t = -5"
    )
    assert re.match(
        text + ", on (recorded|fresh|extreme|structured|timed) inputs", trial.error or ""
    )


def test_a_write_into_an_input_is_wrong_values(parents: ParentPool, place: Path) -> None:
    body = "def replacement(x, y):\n    x.add_(y)\n    return torch.relu(x)\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == "ok" and trial.smallest_t is None
    assert "left with other values" in (trial.error or "")


@pytest.mark.parametrize("call", ["direct", "guarded"])
def test_output_that_is_right_only_at_first_is_wrong(
    call: str, parents: ParentPool, place: Path
) -> None:
    body = (
        "calls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        "    return torch.relu(x + y) if len(calls) < 5 else torch.empty_like(x).fill_(1e9)\n"
    )
    trial = judge(parents, write_passes(place / "bad", body), call)
    assert trial.smallest_t is None


def test_a_graph_that_writes_into_its_input_gets_it_anew_for_every_timed_call(
    parents: ParentPool,
) -> None:
    program = PROGRAM.replace("in_0 + in_1", "in_0.mul_(in_1)")
    graph = Graph(parse_program(program), small_graph().graph.tensors)
    item = TaskGraph("writes", "writes-0", graph)
    candidates = [
        Candidate("eager", "eager", None, "direct"),
        Candidate("null", "null"),
        Candidate("null@guarded", "null", None, "guarded"),
    ]
    for trial in judge_graph(parents, item, candidates, QUICK):
        assert (trial.status, trial.smallest_t) == ("ok", -10), trial


PROVEN = {
    "late_write": (
        "import collections, threading, time\n"
        "recent = collections.deque(maxlen=200)\n"
        "def finish():\n"
        "    while True:\n"
        "        time.sleep(0.003)\n"
        "        for out in list(recent):\n            out += 1\n"
        "threading.Thread(target=finish, daemon=True).start()\n"
        "calls = []\n"
        "def replacement(x, y):\n"
        "    calls.append(1)\n"
        "    out = torch.relu(x + y)\n"
        "    if len(calls) > 5:\n        recent.append(out)\n"
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
    name: str, parents: ParentPool, place: Path
) -> None:
    trial = judge(parents, write_passes(place / "bad", PROVEN[name]))
    assert trial.status == "cheat", trial
    assert name in [item.name for item in trial.findings if item.weight == "reject"]
    assert trial.speedup is None and trial.sandbox == parents.sandbox.name


CACHED = {
    "by the address of its input": "x.data_ptr()",
    "by the shape of its input": "tuple(x.shape)",
    "for good": "0",
}


@pytest.mark.parametrize("name", CACHED)
def test_a_remembered_output_is_named(name: str, parents: ParentPool, place: Path) -> None:
    body = (
        "known = {}\nnumber = [0]\ndef replacement(x, y):\n"
        "    number[0] += 1\n"
        "    if number[0] <= 4:\n        return torch.relu(x + y)\n"
        f"    key = {CACHED[name]}\n"
        "    if key not in known:\n        known[key] = torch.relu(x + y)\n"
        "    return known[key].clone()\n"
    )
    trial = judge(parents, write_passes(place / "bad", body))
    names = {finding.name for finding in trial.findings}
    assert trial.status == "cheat" and names & {"replayed_output", "constant_output"}, trial


def test_a_constant_is_named(parents: ParentPool, place: Path) -> None:
    body = "def replacement(x, y):\n    return torch.full_like(x, 0.125)\n"
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.status == "cheat" and "constant_output" in (trial.error or ""), trial


def test_a_weight_that_is_kept_is_named(parents: ParentPool, place: Path) -> None:
    body = (
        "kept = []\ndef replacement(x, y):\n    kept.append(y.clone()) if not kept else None\n"
        "    return torch.relu(x + kept[0])\n"
    )
    trial = judge(parents, write_passes(place / "bad", body))
    (found,) = [item for item in trial.findings if item.name == "stale_argument"]
    assert found.weight == "flag" and "argument 1" in found.evidence, trial


def test_half_of_the_work_in_timed_calls_is_wrong(parents: ParentPool, place: Path) -> None:
    body = (
        "calls = []\ndef replacement(x, y):\n    calls.append(1)\n"
        "    if len(calls) < 9:\n        return torch.relu(x + y)\n"
        "    out = torch.full_like(x, 1e6)\n"
        "    out[:32] = torch.relu(x[:32] + y[:32])\n    return out\n"
    )
    trial = judge(parents, write_passes(place / "bad", body))
    assert trial.smallest_t is None and "output 0" in (trial.error or "")


def test_an_output_that_is_an_argument_is_wrong_where_the_reference_copies(
    parents: ParentPool,
) -> None:
    program = PROGRAM.replace("torch.relu(tmp_0)", "tmp_0.clone()")
    copies = TaskGraph("a", "a-0", Graph(parse_program(program), small_graph().graph.tensors))
    [trial] = judge_graph(parents, copies, [Candidate("eager", "eager", None, "direct")], QUICK)
    assert trial.smallest_t == -10 and not trial.findings


REMEMBERS = """
answers = []

def replacement(x, y):
    if not answers:
        answers.append(torch.relu(x + y))
    return answers[0].clone()
"""


@pytest.mark.slow
def test_an_answer_remembered_from_whole_numbers_of_one_value_is_wrong(
    parents: ParentPool, place: Path
) -> None:
    ones = tuple(TensorSpec(name, (64, 64), "int64", data=(1,) * 4096) for name in ("in_0", "in_1"))
    graph = TaskGraph("add_relu", "add_relu-0", Graph(parse_program(PROGRAM), ones))
    folders = [write_passes(place / name, body) for name, body in (("a", REMEMBERS), ("b", GOOD))]
    candidates = [
        Candidate(folder.name, "passes", str(folder), "direct", root=str(place.parent))
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
    timing: TimingPlan | None, place: Path
) -> None:
    specs = tuple(TensorSpec(name, (8, 12), "float32", mean=0.0, std=1.0) for name in "xy")
    graph = TaskGraph("view", "view-0", Graph(parse_program(VIEW), specs))
    folder = write_passes(place / "copied", "")
    (folder / "Fuse.py").write_text(COPIED_VIEW)
    good = write_passes(place / "good", GOOD)
    candidates = [
        Candidate(name, "passes", str(path), "direct", root=str(place.parent))
        for name, path in (("copied", folder), ("good", good))
    ]
    with ParentPool() as parents:
        settings = replace(QUICK, timing=timing)
        copied, kept = judge_graph(parents, graph, candidates, settings)
    assert (kept.status, kept.smallest_t) == ("ok", -10), kept.error
    assert (copied.status, copied.smallest_t) == ("ok", None)
    says = "argument 1 and output 1 share no memory, unlike in the reference, on recorded inputs"
    assert copied.error == says
