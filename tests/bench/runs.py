"""A small suite and the command line, as a user has them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from passnet.core.records.serialise import encode
from passnet.data.capture.store import GraphRow, GraphSource
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.judge.suite.suite import make_suite, write_suite
from passnet.judge.task import TaskGraph
from tests.judge.folders import PROGRAM, small_graph

QUICK = ("--seconds", "0.01", "--self-tolerance", "1e9")


def write_small_suite(path: Path, num_graphs: int = 4) -> Path:
    """A suite with two tasks: `add_relu`, which the pass folders of the judge's tests serve, and
    `mul_relu`, which they do not."""
    graphs = []
    for index in range(num_graphs):
        graph = small_graph((32, 16 * (index + 1))).graph
        graphs.append(TaskGraph("add_relu", f"add_relu-{index}", graph))
    other = parse_program(PROGRAM.replace("in_0 + in_1", "in_0 * in_1"))
    graphs.append(TaskGraph("mul_relu", "mul_relu-0", Graph(other, small_graph().graph.tensors)))
    write_suite(path, make_suite(path.stem, graphs))
    return path


def captured(graph: Graph, *sources: GraphSource) -> GraphRow:
    """The row under which a graph of some nets is stored."""
    prints = fingerprints(graph)
    return GraphRow(
        prints.full or "", prints.literals, prints.structure, render_program(graph.program),
        encode(graph.tensors).decode(), op_sequence(graph.program), "[]", "cv", "classify", sources,
    )  # fmt: skip


def command(*args: object) -> list[str]:
    """The command line of `passnet` with some arguments."""
    return [sys.executable, "-m", "passnet.cli", *map(str, args)]


def passnet(*args: object, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
    """Run `passnet` and wait for it."""
    return subprocess.run(
        command(*args), capture_output=True, text=True, timeout=timeout_s, check=False
    )


def lines(out: Path) -> list[dict[str, Any]]:
    """The records in a run folder."""
    text = (out / "trials.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]
