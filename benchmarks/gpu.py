"""How well the judge's times on a GPU agree with CUDA's own, and what a trial costs beside them.

Run it with `python -m benchmarks.gpu [NUM_ROUNDS]` where there is a GPU. One graph, relu(x + y), in
sizes whose kernels take about 10 µs, 100 µs and 1 ms, is judged with `eager` against itself, an A/A
test: the time of the judge's clock (cold, with what launching costs), one of many calls in a row
(hot), and the two that the worker saw: between two events, and in kernels.
"""

from __future__ import annotations

import statistics
import sys
import time

from rich.console import Console

from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.protocol.device import find_device
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import Table, print_table

PROGRAM = """
import torch

class GraphModule(torch.nn.Module):
    def forward(self, in_0: torch.Tensor, in_1: torch.Tensor):
        tmp_0 = in_0 + in_1
        tmp_1 = torch.relu(tmp_0)
        return (tmp_1,)
"""

SIZES = {"10 µs": 1 << 21, "100 µs": 1 << 25, "1 ms": 1 << 28}
"""Elements of float32; the names are what the two kernels take at some terabytes a second."""

CANDIDATES = (Candidate("eager", "eager", call="direct"), Candidate("null", "null", call="direct"))


def judged(parents: ParentPool, num_elements: int) -> tuple[Trial, Trial, float]:
    """The trials of eager and null, and the seconds that they took without running either."""
    specs = tuple(
        TensorSpec(name, (num_elements,), "float32", mean=0.0, std=1.0) for name in ("in_0", "in_1")
    )
    graph = TaskGraph("add_relu", "add_relu-0", Graph(parse_program(PROGRAM), specs))
    start = time.perf_counter()
    eager, null = judge_graph(parents, graph, CANDIDATES, JudgeSettings(device="cuda"))
    seconds = time.perf_counter() - start
    return eager, null, seconds - eager.phases_s.get("timing", 0.0)


def main() -> None:
    """Print the table."""
    num_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    table = Table(
        f"relu(x + y), eager against itself on {find_device('cuda')}, medians of {num_rounds}",
        ("size", "cold µs", "hot µs", "events µs", "kernels µs", "ratio %", "spread %", "other s"),
        note="ratio: eager over reference, less one; spread: its standard deviation. other: what "
        "two trials take beside timing.",
    )
    with ParentPool(device="cuda") as parents:
        for name, num_elements in SIZES.items():
            rounds = [judged(parents, num_elements) for _ in range(num_rounds)]
            trials = [eager for eager, _, _ in rounds if eager.speedup is not None]
            if len(trials) < 2:
                raise SystemExit(f"{name}: {rounds[0][0].status}: {rounds[0][0].error}")
            ratios = [100 * ((trial.speedup or 1.0) - 1) for trial in trials]
            profiles = [trial.profile for trial in trials if trial.profile is not None]
            cold = [1e3 * (trial.reference_ms or 0.0) for trial in trials]
            hot = [1e3 * (trial.reference_hot_ms or 0.0) for trial in trials]
            table.rows.append(
                (
                    name,
                    f"{statistics.median(cold):.1f}",
                    f"{statistics.median(hot):.1f}",
                    f"{1e3 * _median([profile.event_ms for profile in profiles]):.1f}",
                    f"{1e3 * _median([profile.kernel_ms for profile in profiles]):.1f}",
                    f"{statistics.median(ratios):+.2f}",
                    f"{statistics.stdev(ratios):.2f}",
                    f"{statistics.median(seconds for _, _, seconds in rounds):.2f}",
                )
            )
    print_table(Console(width=120), table)


def _median(values: list[float]) -> float:
    return statistics.median(values) if values else float("nan")


if __name__ == "__main__":
    main()
