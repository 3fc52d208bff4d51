"""The ops that torch computes in a strict worker are counted, and compared with its graph's."""

import ctypes
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import CallMode, Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool, worker_library
from passnet.judge.processes.sandbox import find_sandbox
from passnet.judge.protocol.op_counts import NUM_COUNTERS, OpBudget
from passnet.judge.protocol.shared_memory import ControlPage
from passnet.judge.task import TaskGraph
from passnet.passes.codegen.cpp_source import cpp_source
from passnet.passes.codegen.folder_text import RangeSource, pass_folder
from passnet.passes.codegen.lowered_ranges import GraphLowering
from passnet.passes.files import write_files
from tests.judge.trials import QUICK

COUNTING = """
import operator, sys, threading
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from passnet.judge.worker.op_counter import OpCounter
counter = OpCounter(sys.argv[1], int(sys.argv[2]))
x, counts = torch.ones(4, 4), []
def count(function):
    before = counter.total()
    function()
    counts.append(counter.total() - before)
def in_thread():
    thread = threading.Thread(target=lambda: x @ x)
    thread.start()
    thread.join()
def unrecorded():
    torch.autograd._enable_record_function(False)
    with torch.inference_mode():
        x.exp()
def moved():
    torch.empty_like(x).copy_(x).t().clone()[:2].zero_()
def without_values():
    torch.nn.functional.pad(torch.ones(4, 4, device="meta"), (1, 1))
    with FakeTensorMode():
        torch.nn.functional.pad(torch.ones(4, 4), (1, 1))
def as_if_without():
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)
    torch.ops.aten.celu.default.redispatch(keys, x)
for function in (
    lambda: x + x, in_thread, unrecorded, lambda: torch.ops.aten.exp(x), moved, without_values,
    as_if_without,
):
    count(function)
print(counts)
y, counts[:] = torch.ones(4, 4), []
for text in sys.argv[3:]:
    count(lambda: eval(text))
print(counts)
"""

METHODS = (
    "x.matmul(y)",
    "x.add_(y)",
    "(lambda f: f(y))(x.matmul)",
    "getattr(x, 'mat' + 'mul')(y)",
    "type(x).matmul(x, y)",
    "list(map(x.matmul, [y]))",
    "operator.methodcaller('mm', y)(x)",
    "[x][0].sum()",
    "torch.empty_like(x).sum()",
    "sum([x, y])",
    *(f"x.{name}(y)" for name in ("inner", "subtract", "divide", "__rsub__", "logical_and")),
    *(f"x.{name}()" for name in ("log", "nanmean", "argsort")),
)
"""Uses of methods that the text of a folder does not tell from those of other objects."""

RESIDUAL = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 + in_1
        tmp_1 = torch.relu(tmp_0)
        tmp_2 = torch.softmax(tmp_1, -1)
        tmp_3 = torch.nn.functional.layer_norm(tmp_2, (64,))
        return (tmp_3,)
"""
PASS = """
import torch
from passnet.passes import cpp

SOURCE = '''
#include <cstdint>
extern "C" void run(const float* x, const float* y, float* out, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i] < 0 ? 0 : x[i] + y[i];
}
'''
RUN = cpp.kernel(SOURCE, "run")

def pattern(x, y):
    return torch.relu(x + y)

def replacement_args(x, y):
    return x, y

def replacement(x, y):
    out = torch.empty_like(x)
    RUN(x, y, out, x.numel())
    return out

def replacement_func():
    return replacement
"""
WRITTEN = "    RUN(x, y, out, x.numel())\n"


def test_ops_are_counted_in_all_threads_and_modes_and_moves_are_not() -> None:
    library = worker_library("op_counter")
    if library is None:
        pytest.skip("the library that counts does not compile here")
    budget = OpBudget()
    fd = budget.memory.fd
    command = [sys.executable, "-c", COUNTING, str(library), str(fd), *METHODS]
    run = subprocess.run(command, pass_fds=[fd], capture_output=True, text=True, check=False)
    ops, of_methods = (json.loads(line) for line in run.stdout.splitlines())
    assert ops[:-1] == [1, 1, 1, 1, 0, 0] and ops[-1] > 0, run.stderr
    assert [text for text, num_ops in zip(METHODS, of_methods, strict=True) if not num_ops] == []
    budget.note(1)
    assert (
        f"torch computed {sum(ops) + sum(of_methods)} ops" in (budget.excess() or "")
        and "aten::exp" in budget.excess()
    )  # type: ignore[operator]


def test_a_budget_is_what_calls_need() -> None:
    budget = OpBudget(ops_per_call=2)
    counters = (ctypes.c_uint64 * NUM_COUNTERS).from_buffer(budget.memory.map)
    counters[3] += 6
    budget.note(3)
    counters[3] += 100
    budget.note(None)
    assert budget.excess() is None
    counters[3] += 3
    budget.note(1)
    assert budget.excess() is not None


def test_observed_calls_are_no_calls_of_the_budget() -> None:
    orders = (ControlPage.CALL, ControlPage.WARM, ControlPage.OBSERVE, ControlPage.IDLE)
    assert [ControlPage.num_calls(order, 5) for order in orders] == [5, 5, None, 0]


@pytest.mark.xdist_group("statuses")
@pytest.mark.parametrize(
    "call",
    ["direct", *(pytest.param(call, marks=pytest.mark.slow) for call in ("compiled", "guarded"))],
)
def test_ops_that_passes_leave_are_expected_and_one_more_is_not(
    call: CallMode, tmp_path: Path
) -> None:
    specs = tuple(TensorSpec(name, (64, 64), "float32", std=1.0) for name in ("in_0", "in_1"))
    graph = TaskGraph("t", "t-0", Graph(parse_program(RESIDUAL), specs))
    bodies = {
        "honest": PASS,
        "in_calls": PASS.replace(WRITTEN, WRITTEN + "    out = out + 0.0\n"),
        "at_load": PASS + "TABLE = sum([torch.ones(2), torch.ones(2)])\n",
    }
    candidates = []
    for name, text in bodies.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "Fuse.py").write_text(text)
        (folder / "sorted_output_pass_rule_names.json").write_text('["Fuse"]')
        candidates.append(Candidate(name, "passes", str(folder), call, root=str(folder)))
    lowering = GraphLowering(graph.graph, "graph")
    lowered = [lowering.lowered(span, ()) for span in lowering.largest(())]
    made = pass_folder([RangeSource(each, cpp_source(each.code)) for each in lowered if each])
    write_files(made, tmp_path / "made")
    root = str(tmp_path / "made")
    candidates.insert(0, Candidate("made", "passes", root, call, root=root))
    with ParentPool(sandbox=find_sandbox()) as parents:
        timing = None if call == "direct" else QUICK.timing
        settings = replace(QUICK, rules="strict", timing=timing)
        generated, honest, *others = judge_graph(parents, graph, candidates, settings)
    for trial in (generated, honest):
        assert trial.status in ("ok", "unstable") and not trial.findings, trial
    for trial in others:
        assert trial.status == "cheat" and "torch computed" in (trial.error or ""), trial
