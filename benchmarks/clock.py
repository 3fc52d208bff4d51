"""How far the judge's clock is from a clock inside the process, for work of a known length.

Run it with `make bench`. A kernel spins for a given processor time; the judge times it in its
worker, and a loop in this process times the same rewritten graph. The difference is what a call on
fresh inputs adds, in a burst from which that of no calls is taken off.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import torch

from passnet.graph.fx.build import build
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.graph.values.inputs import make_inputs
from passnet.judge.candidate import REFERENCE, Candidate
from passnet.judge.processes.loaded_worker import LoadedWorker, prepare_graph
from passnet.judge.processes.worker_parent import WorkerParent
from passnet.judge.protocol.messages import WorkerLimits
from passnet.judge.settings import JudgeSettings, TimingPlan
from passnet.judge.timing.clock import interleave
from passnet.judge.timing.estimate import low_mean
from passnet.judge.timing.fresh_inputs import FreshInputs
from passnet.judge.timing.timed_worker import TimedWorker
from passnet.pages.tables.tables import Table
from passnet.passes.apply.rewrite import apply_passes
from passnet.passes.folder import inspect_folder
from passnet.passes.load import load_passes

LENGTHS_US = (10, 20, 200, 2000)
CALL_TIMEOUT_S = 10.0
NUM_CALLS = 200

PROGRAM = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 + in_1
        return (tmp_0,)
"""

PASS = '''
import torch
from passnet.passes import cpp

SOURCE = r"""
#include <cstdint>
#include <ctime>
static int64_t ran() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
extern "C" void spin(const float* x, const float* y, float* out, int64_t n, int64_t ns) {
  int64_t end = ran() + ns;
  for (int64_t i = 0; i < n; i++) out[i] = x[i] + y[i];
  while (ran() < end) {}
}
"""
SPIN = cpp.kernel(SOURCE, "spin", "pppnn")

def pattern(x, y):
    return x + y

def replacement_args(x, y):
    return x, y

def spin(x, y):
    out = torch.empty_like(x)
    SPIN(x.data_ptr(), y.data_ptr(), out.data_ptr(), x.numel(), LENGTH)
    return out

def replacement_func():
    return spin
'''


def clock_table() -> Table:
    """One row for each length of work: by the clock inside, by the judge's, and the difference."""
    table = Table(
        "The judge's clock against a clock inside the process",
        ("work us", "inside us", "judge us", "difference us", "difference %"),
    )
    with tempfile.TemporaryDirectory() as folder_name, WorkerParent() as parent:
        for length_us in LENGTHS_US:
            folder = Path(folder_name) / str(length_us)
            folder.mkdir()
            (folder / "Spin.py").write_text(PASS.replace("LENGTH", str(length_us * 1000)))
            (folder / "sorted_output_pass_rule_names.json").write_text(json.dumps(["Spin"]))
            inside, outside = _inside_us(folder), _judged_us(parent, folder)
            table.rows.append(
                (
                    str(length_us),
                    f"{inside:.1f}",
                    f"{outside:.1f}",
                    f"{outside - inside:+.1f}",
                    f"{100 * (outside / inside - 1):+.1f}",
                )
            )
    return table


def _graph() -> Graph:
    specs = tuple(TensorSpec(name, (64, 64), "float32", std=1.0) for name in ("in_0", "in_1"))
    return Graph(parse_program(PROGRAM), specs)


def _inside_us(folder: Path) -> float:
    """The median time of a call, by a loop around it in this process."""
    module = build(_graph().program)
    apply_passes(module, load_passes(inspect_folder(folder)))
    args = [torch.rand(64, 64), torch.rand(64, 64)]
    times = []
    with torch.no_grad():
        for _ in range(NUM_CALLS):
            start = time.thread_time_ns()
            module(*args)
            times.append((time.thread_time_ns() - start) / 1e3)
    return statistics.median(times)


def _judged_us(parent: WorkerParent, folder: Path) -> float:
    """The time of a call as the judge has it."""
    graph = _graph()
    problem = prepare_graph(graph, [make_inputs(graph, "fresh", seed) for seed in range(2)])
    spinning = Candidate("spin", "passes", str(folder), "direct")
    settings = JudgeSettings(
        limits=WorkerLimits(1024), compile_timeout_s=60, call_timeout_s=CALL_TIMEOUT_S
    )
    plan, random = TimingPlan(), np.random.default_rng(0)
    with ExitStack() as stack:
        workers = []
        for candidate in (REFERENCE, spinning, REFERENCE):
            loaded = stack.enter_context(LoadedWorker(parent, problem, candidate, settings))
            loaded.run(0)
            workers.append(TimedWorker(loaded, plan.max_calls, CALL_TIMEOUT_S))
        *timed, oracle = workers
        fresh = FreshInputs(problem.tensors, problem.input_sets, random)
        measured = interleave(timed, oracle, plan, fresh, random, problem)
        for worker in workers:
            worker.close()
    return float(low_mean(np.array(measured.timings[1].rounds_ms).reshape(-1))) * 1e3
