"""Cutting and verifying: seconds for 1,000 subgraphs of captured graphs, in two processes.

Run it with `python -m benchmarks.cutting [FOLDER]`, of a set of captured graphs, by default those
in `captures`. The goal is five minutes on two cores.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from rich.console import Console

from benchmarks.subgraph_verification import VerifiedRange, verify
from passnet.errors import PassnetError
from passnet.extract.store import GRAPHS, GraphRow, read_set
from passnet.graph.meta import DTYPE_BYTES
from passnet.graph.parse import parse_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.mine.folding import COVERING, alphabet, fold, ranges
from passnet.mine.subgraphs import RangeRefusal, Subgraph, subgraphs
from passnet.records.serialise import decode
from passnet.report.tables import Table, print_table

CAPTURES = Path(__file__).parents[1] / "captures"
NUM_SUBGRAPHS = 1000
NUM_PROCESSES = 2
EACH = 20
"""Most subgraphs of one graph, so that many graphs have a part."""

MAX_OPS = 400
MAX_ARGUMENT_BYTES = 256 * 2**20
"""Graphs with more ops or larger arguments are left out: they would be most of the time."""

Interval = tuple[int, int]


@dataclass(frozen=True)
class Outcome:
    """What came of some ranges of a graph: how many were cut, of these how many lost ops at their
    ends, how many had the parent's values; why the others had not; and the seconds of CPU time.
    """

    num_ranges: int
    num_cut: int
    num_trimmed: int
    num_equal: int
    reasons: tuple[str, ...]
    cut_s: float
    verify_s: float


def is_small(graph: Graph) -> bool:
    """Whether a graph has a part in the measurement."""
    size = sum(item.num_elements * DTYPE_BYTES[item.dtype] for item in graph.tensors)
    return 4 <= len(graph.program.ops) <= MAX_OPS and size <= MAX_ARGUMENT_BYTES


def graph_of(row: GraphRow) -> Graph:
    """The graph that a row holds."""
    return Graph(parse_program(row.program), decode(row.tensors, tuple[TensorSpec, ...], row.full))


def check(
    graph: Graph, chosen: Sequence[Interval]
) -> list[tuple[int, RangeRefusal | VerifiedRange]]:
    """What came of each range, with the number of ops that it lost."""
    items = list(subgraphs(graph, chosen, ["classical"]))
    found = [item for item in items if isinstance(item, Subgraph)]
    outcomes = iter(verify(graph, found))
    return [
        (0, item) if isinstance(item, RangeRefusal) else (item.num_trimmed, next(outcomes))
        for item in items
    ]


def measure(job: tuple[GraphRow, tuple[Interval, ...]]) -> Outcome:
    """Cut and verify some ranges of one graph."""
    torch.set_num_threads(1)
    row, chosen = job
    graph = graph_of(row)
    start = time.process_time()
    try:
        items = list(subgraphs(graph, chosen, ["classical"]))
        found = [item for item in items if isinstance(item, Subgraph)]
        middle = time.process_time()
        checked = verify(graph, found)
    except PassnetError as cause:
        return Outcome(len(chosen), 0, 0, 0, (str(cause),), time.process_time() - start, 0.0)
    end = time.process_time()
    reasons = [item.reason for item in items if isinstance(item, RangeRefusal)]
    reasons += [f"{item.status}: {item.reason}" for item in checked if item.status != "equal"]
    return Outcome(
        len(items),
        len(found),
        sum(item.num_trimmed > 0 for item in found),
        sum(item.status == "equal" for item in checked),
        tuple(reasons),
        middle - start,
        end - middle,
    )


def draw(rows: Sequence[GraphRow]) -> list[tuple[GraphRow, tuple[Interval, ...]]]:
    """Classical ranges of graphs in an order by chance, `NUM_SUBGRAPHS` in all."""
    sequences, _ = alphabet([row.op_sequence for row in rows])
    by_graph: dict[int, list[Interval]] = {}
    for item in ranges(fold(sequences, COVERING), COVERING):
        by_graph.setdefault(item.sequence, []).append((item.start, item.stop))
    rng = random.Random(0)
    jobs, wanted = [], NUM_SUBGRAPHS
    for number in rng.sample(sorted(by_graph), len(by_graph)):
        if wanted and is_small(graph_of(rows[number])):
            intervals = by_graph[number]
            chosen = sorted(rng.sample(intervals, min(EACH, len(intervals), wanted)))
            jobs.append((rows[number], tuple(chosen)))
            wanted -= len(chosen)
    return jobs


def cutting_table(rows: Sequence[GraphRow]) -> Table:
    """One row: how many ranges, what came of them, and the seconds."""
    jobs = draw(rows)
    start = time.perf_counter()
    with ProcessPoolExecutor(NUM_PROCESSES, get_context("spawn")) as pool:
        outcomes = []
        for outcome in pool.map(measure, jobs):
            outcomes.append(outcome)
            print(f"{len(outcomes)} of {len(jobs)} graphs", end="\r", file=sys.stderr)
    wall_s = time.perf_counter() - start
    table = Table(
        f"cut and verify {sum(item.num_ranges for item in outcomes)} classical ranges of "
        f"{len(jobs)} captured graphs, {NUM_PROCESSES} processes",
        (
            "graphs",
            "ranges",
            "cut",
            "trimmed",
            "equal",
            "wall s",
            "cutting CPU s",
            "verifying CPU s",
        ),
        note="wall s: with the start of the processes. CPU s: summed over processes; cutting "
        "includes finding the shapes of all values of the graph.",
    )
    sums = [
        sum(getattr(item, name) for item in outcomes)
        for name in ("num_ranges", "num_cut", "num_trimmed", "num_equal")
    ]
    times = (wall_s, sum(item.cut_s for item in outcomes),
             sum(item.verify_s for item in outcomes))  # fmt: skip
    table.rows.append((str(len(jobs)), *map(str, sums), *(f"{item:.1f}" for item in times)))
    reasons = Counter(re.sub(r"\d+", "N", text) for item in outcomes for text in item.reasons)
    for reason, count in reasons.most_common():
        print(f"{count} x {reason[:150]}", file=sys.stderr)
    return table


def read_rows(folder: Path) -> list[GraphRow]:
    """All graphs of a set."""
    return [row for file in read_set(folder)[1] for row in GRAPHS.read(file)]


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES
    print_table(Console(width=120), cutting_table(read_rows(folder)))
