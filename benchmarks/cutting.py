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
from passnet.core.records.serialise import decode
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.data.mine.folding import COVERING, alphabet, fold, ranges
from passnet.data.mine.subgraphs import RangeRefusal, Subgraph, subgraphs
from passnet.errors import PassnetError
from passnet.graph.spec import Graph, TensorSpec
from passnet.graph.text.meta import DTYPE_BYTES
from passnet.graph.text.parse import parse_program
from passnet.pages.tables.tables import Table, print_table

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
class GraphOutcome:
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
    size = sum(spec.num_elements * DTYPE_BYTES[spec.dtype] for spec in graph.tensors)
    return 4 <= len(graph.program.ops) <= MAX_OPS and size <= MAX_ARGUMENT_BYTES


def graph_of(row: GraphRow) -> Graph:
    """The graph that a row holds."""
    return Graph(parse_program(row.program), decode(row.tensors, tuple[TensorSpec, ...], row.full))


def check(
    graph: Graph, intervals: Sequence[Interval]
) -> list[tuple[int, RangeRefusal | VerifiedRange]]:
    """What came of each range, with the number of ops that it lost."""
    cuts = list(subgraphs(graph, intervals, ["classical"]))
    pieces = [cut for cut in cuts if isinstance(cut, Subgraph)]
    outcomes = iter(verify(graph, pieces))
    return [
        (0, cut) if isinstance(cut, RangeRefusal) else (cut.num_trimmed, next(outcomes))
        for cut in cuts
    ]


def measure(job: tuple[GraphRow, tuple[Interval, ...]]) -> GraphOutcome:
    """Cut and verify some ranges of one graph."""
    torch.set_num_threads(1)
    row, intervals = job
    graph = graph_of(row)
    start = time.process_time()
    try:
        cuts = list(subgraphs(graph, intervals, ["classical"]))
        pieces = [cut for cut in cuts if isinstance(cut, Subgraph)]
        middle = time.process_time()
        checked = verify(graph, pieces)
    except PassnetError as cause:
        cut_s = time.process_time() - start
        return GraphOutcome(len(intervals), 0, 0, 0, (str(cause),), cut_s, 0.0)
    end = time.process_time()
    reasons = [cut.reason for cut in cuts if isinstance(cut, RangeRefusal)]
    reasons += [f"{span.status}: {span.reason}" for span in checked if span.status != "equal"]
    return GraphOutcome(
        len(cuts),
        len(pieces),
        sum(cut.num_trimmed > 0 for cut in pieces),
        sum(span.status == "equal" for span in checked),
        tuple(reasons),
        middle - start,
        end - middle,
    )


def draw(rows: Sequence[GraphRow]) -> list[tuple[GraphRow, tuple[Interval, ...]]]:
    """Classical ranges of graphs in an order by chance, `NUM_SUBGRAPHS` in all."""
    sequences, _ = alphabet([row.op_sequence for row in rows])
    by_graph: dict[int, list[Interval]] = {}
    for span in ranges(fold(sequences, COVERING), COVERING):
        by_graph.setdefault(span.sequence, []).append((span.start, span.stop))
    rng = random.Random(0)
    jobs, num_missing = [], NUM_SUBGRAPHS
    for number in rng.sample(sorted(by_graph), len(by_graph)):
        if num_missing and is_small(graph_of(rows[number])):
            intervals = by_graph[number]
            sample = sorted(rng.sample(intervals, min(EACH, len(intervals), num_missing)))
            jobs.append((rows[number], tuple(sample)))
            num_missing -= len(sample)
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
        f"cut and verify {sum(outcome.num_ranges for outcome in outcomes)} classical ranges of "
        f"{len(jobs)} captured graphs, {NUM_PROCESSES} processes",
        ("graphs", "ranges", "cut", "trimmed", "equal", "wall s", "cutting CPU s",
         "verifying CPU s"),
        note="wall s: with the start of the processes. CPU s: summed over processes; cutting "
        "includes finding the shapes of all values of the graph.",
    )  # fmt: skip
    sums = [
        sum(getattr(outcome, name) for outcome in outcomes)
        for name in ("num_ranges", "num_cut", "num_trimmed", "num_equal")
    ]
    times = (wall_s, sum(outcome.cut_s for outcome in outcomes),
             sum(outcome.verify_s for outcome in outcomes))  # fmt: skip
    table.rows.append((str(len(jobs)), *map(str, sums), *(f"{seconds:.1f}" for seconds in times)))
    reasons = Counter(re.sub(r"\d+", "N", text) for outcome in outcomes for text in outcome.reasons)
    for reason, count in reasons.most_common():
        print(f"{count} x {reason[:150]}", file=sys.stderr)
    return table


def read_rows(folder: Path) -> list[GraphRow]:
    """All graphs of a set."""
    return [row for file in read_set(folder)[1] for row in GRAPHS.read(file)]


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else CAPTURES
    print_table(Console(width=120), cutting_table(read_rows(folder)))
