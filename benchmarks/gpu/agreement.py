"""How well the judge's times on a GPU agree with themselves and with CUDA's own.

`python -m benchmarks.gpu.agreement RECORDS [NUM_ROUNDS]` appends what is not there yet. One graph,
relu(x + y), in sizes whose kernels take about 10 µs, 100 µs and 1 ms, is judged with `eager`
against itself, an A/A test: the time of the judge's clock (cold, with what launching costs), one of
many calls in a row (hot), and the two that the worker saw: between two events, and in kernels.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.core.records.serialise import LineWriter, has_lines, read_lines
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.parse import parse_program
from passnet.judge.candidate import Candidate
from passnet.judge.judge import judge_graph
from passnet.judge.processes.parent_pool import ParentPool
from passnet.judge.settings import JudgeSettings
from passnet.judge.task import TaskGraph
from passnet.judge.trial import Trial
from passnet.pages.tables.tables import Table

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

NUM_ROUNDS = 5
CANDIDATES = (Candidate("eager", "eager", call="direct"), Candidate("null", "null", call="direct"))


@dataclass(frozen=True)
class AgreementRound:
    """One round: the trial of eager, and the seconds that two trials took besides timing."""

    size: str
    number: int
    eager: Trial
    other_s: float


def judged(parents: ParentPool, num_elements: int, settings: JudgeSettings) -> tuple[Trial, float]:
    """Return the trial of eager beside null, and the seconds that both took without timing."""
    specs = tuple(
        TensorSpec(name, (num_elements,), "float32", mean=0.0, std=1.0) for name in ("in_0", "in_1")
    )
    graph = TaskGraph("add_relu", "add_relu-0", Graph(parse_program(PROGRAM), specs))
    start = time.perf_counter()
    eager, _ = judge_graph(parents, graph, CANDIDATES, settings)
    seconds = time.perf_counter() - start
    return eager, seconds - eager.phases_s.get("timing", 0.0)


def rounds(path: Path) -> list[AgreementRound]:
    """Return the rounds that were measured."""
    return list(read_lines(path, AgreementRound, skip_torn=True)) if has_lines(path) else []


def measure(path: Path, num_rounds: int) -> None:
    """Measure the rounds that are missing, one of each size at a time."""
    known = {(each.size, each.number) for each in rounds(path)}
    settings = JudgeSettings(device="cuda")
    with ParentPool(device="cuda") as parents, LineWriter(path) as writer:
        for number in range(num_rounds):
            for size, num_elements in SIZES.items():
                if (size, number) not in known:
                    eager, other_s = judged(parents, num_elements, settings)
                    writer.write(AgreementRound(size, number, eager, other_s))


def table(found: Sequence[AgreementRound]) -> Table:
    """Return a row for each size, with medians over its rounds."""
    made = Table(
        "relu(x + y), eager against itself",
        ("size", "rounds", "cold µs", "hot µs", "events µs", "kernels µs", "ratio %", "spread %",
         "other s"),
        note="ratio: eager over reference, less one; spread: its standard deviation. other: what "
        "two trials take besides timing.",
    )  # fmt: skip
    for size in SIZES:
        own = [each for each in found if each.size == size]
        trials = [each.eager for each in own if each.eager.speedup is not None]
        profiles = [trial.profile for trial in trials if trial.profile is not None]
        ratios = [100 * ((trial.speedup or 1.0) - 1) for trial in trials]
        cells = (
            _median([1e3 * (trial.reference_ms or 0.0) for trial in trials], ".1f"),
            _median([1e3 * (trial.reference_hot_ms or 0.0) for trial in trials], ".1f"),
            _median([1e3 * profile.event_ms for profile in profiles], ".1f"),
            _median([1e3 * profile.kernel_ms for profile in profiles], ".1f"),
            _median(ratios, "+.2f"),
            f"{statistics.stdev(ratios):.2f}" if len(ratios) > 1 else "–",
            _median([each.other_s for each in own], ".2f"),
        )
        made.rows.append((size, str(len(trials)), *cells))
    return made


def _median(values: Sequence[float], form: str) -> str:
    return format(statistics.median(values), form) if values else "–"


if __name__ == "__main__":
    measure(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else NUM_ROUNDS)
