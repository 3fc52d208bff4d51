"""Kernels that really start on a GPU, against the plan that is made without one.

`python -m benchmarks.gpu.launches RECORDS` takes a graph of each task and dtype of the demo suite,
and appends those that are not there yet.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.fusion import MAX_EXECUTED_OPS
from benchmarks.prefix_counts import prefix_launches
from passnet.core.records.serialise import LineWriter, has_lines, read_lines
from passnet.graph.spec import Graph
from passnet.inductor.fusion import fusion_plan
from passnet.judge.suite.suite import load_suite


@dataclass(frozen=True)
class LaunchCount:
    """The kernels of a graph by its plan, and those that started."""

    graph: str
    planned: str
    launched: str


def counts(path: Path) -> list[LaunchCount]:
    """Return the graphs that were counted."""
    return list(read_lines(path, LaunchCount, skip_torn=True)) if has_lines(path) else []


def graphs() -> Iterator[tuple[str, Graph]]:
    """Yield the first graph of every task and dtype of the demo suite that is small enough."""
    seen = set()
    for graph in load_suite("demo").graphs:
        kind = (graph.task, graph.name.rpartition("-")[2])
        if kind not in seen and len(graph.graph.program.ops) <= MAX_EXECUTED_OPS["cuda"]:
            seen.add(kind)
            yield graph.name, graph.graph


def measure(path: Path) -> None:
    """Count the graphs that are missing."""
    known = {each.graph for each in counts(path)}
    with LineWriter(path) as writer:
        for name, graph in graphs():
            if name not in known:
                planned = fusion_plan(graph, device="cuda").num_kernels()
                launched = prefix_launches(graph, device="cuda")
                writer.write(LaunchCount(name, str(planned), str(launched)))


if __name__ == "__main__":
    measure(Path(sys.argv[1]))
