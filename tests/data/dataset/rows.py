"""Small datasets to test with, of rows made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from passnet.data.dataset.store import (
    Occurrence,
    Provenance,
    SubgraphRow,
    row_of_graph,
    write_dataset,
)
from passnet.graph.spec import Graph, TensorSpec
from tests.graph.programs import graph_of, program_of

ONE, TWO, OTHER = "1" * 64, "2" * 64, "3" * 64


def row_of_one_place(graph: Graph, kinds: tuple[str, ...] = ("single",), **changes) -> SubgraphRow:
    """The row of a graph at one place, with some of its fields changed."""
    occurrence = Occurrence(ONE, 0, len(graph.program.ops))
    provenance = Provenance(kinds, "", "", "cv", ("lib/one",), 1, 1, (occurrence,))
    return replace(row_of_graph(graph, provenance, "test"), **changes)


RELU = program_of("x = torch.relu(a)", "y = x + b", returns="(y,)")
TANH = program_of("x = torch.tanh(a)", params="a", returns="(x,)")
CHAIN = program_of("x = torch.tanh(a)", "y = torch.relu(x)", "z = y + b", returns="(z,)")

_STATED = TensorSpec(
    "a", (4,), "float32", "cuda:0", 0.5, 0.25, None, None, (1.0, 2.0, 3.0, 4.0), "L_a_",
    ("name", "original_name", "shape", "dtype", "device", "mean", "std", "data"), "input",
)  # fmt: skip
_WIDE = row_of_one_place(
    graph_of(RELU, (8, 3)), ("classical", "fusible"), nets=("lib/one", "lib/two")
)
ROWS = [
    replace(
        _WIDE,
        num_graphs=2,
        num_places=3,
        places=(Occurrence(ONE, 0, 2), Occurrence(ONE, 4, 6), Occurrence(TWO, 1, 3)),
    ),
    row_of_one_place(graph_of(RELU), ("fusible",), domain="nlp", nets=("own/a b/c",)),
    row_of_one_place(
        graph_of(RELU, dtype="bfloat16"), ("fusible",), variant="bfloat16", original=_WIDE.full
    ),
    row_of_one_place(Graph(TANH, (_STATED,)), places=(Occurrence(TWO, 7, 8),)),
    row_of_one_place(graph_of(TANH, (), "int64"), domain="audio", nets=()),
    row_of_one_place(graph_of(CHAIN), ("classical",), num_places=20, num_graphs=9),
]


def in_order(rows: Sequence[SubgraphRow]) -> list[SubgraphRow]:
    return sorted(rows, key=lambda row: (row.structure, row.full))


def write(folder: Path, rows: Sequence[SubgraphRow] = ROWS) -> Path:
    """A dataset in a new folder."""
    folder.mkdir()
    write_dataset(folder, rows, {})
    return folder
