"""Captured graphs on disk: Parquet files of one row a graph, merged without duplicates."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from passnet.core.jobs.process import RECORD_FILE, ROWS_FILE
from passnet.core.records.parquet import Format, Shard, check_shards, write_shards
from passnet.core.records.serialise import SCHEMA_VERSION, encode, read_json, write_json
from passnet.data.capture.record import Domain
from passnet.errors import InputError
from passnet.graph.canonical import fingerprints, op_sequence
from passnet.graph.spec import Graph
from passnet.graph.text.render import render_program

R = TypeVar("R")

MANIFEST_FILE = "manifest.json"
SHARD_NAME = "graphs"

GraphKind: TypeAlias = Literal["inference", "training", "backward"]
"""The pass of a net that a graph computes; a graph found in several is of the first."""

GRAPH_KINDS: tuple[GraphKind, ...] = ("inference", "training", "backward")


@dataclass(frozen=True, slots=True)
class GraphSource:
    """The origin of a graph: a numbered graph of an entry, or that of its gradients."""

    entry: str
    number: int
    train: bool = False
    part: Literal["forward", "backward"] = "forward"

    @property
    def kind(self) -> GraphKind:
        """The kind of the graph there."""
        if self.part == "backward":
            return "backward"
        return "training" if self.train else "inference"


@dataclass(frozen=True, slots=True)
class GraphRow:
    """One graph with its sources. `tensors` are its arguments and `axes` the axis names of the
    net's inputs, both JSON; domain and task are those of the first source.
    """

    full: str
    literals: str
    structure: str
    program: str
    tensors: str
    op_sequence: tuple[str, ...]
    axes: str
    domain: Domain
    task: str
    sources: tuple[GraphSource, ...]

    def __post_init__(self) -> None:
        if not self.sources:
            raise InputError(f"graph {self.full[:16]}: names no source; capture it again")

    @property
    def kind(self) -> GraphKind:
        """The first kind among its sources."""
        return min((source.kind for source in self.sources), key=GRAPH_KINDS.index)


GRAPHS: Format[GraphRow] = Format(GraphRow, "captured graphs")


def row_of(
    graph: Graph, source: GraphSource, axes: Mapping[str, list[str]], domain: Domain, task: str = ""
) -> GraphRow:
    """Return the row of a graph; raise InputError if an argument has no shape and dtype."""
    prints = fingerprints(graph)
    if prints.full is None:
        raise InputError(f"{source.entry}: its arguments have no shapes and dtypes")
    return GraphRow(
        full=prints.full,
        literals=prints.literals,
        structure=prints.structure,
        program=render_program(graph.program),
        tensors=encode(graph.tensors).decode(),
        op_sequence=op_sequence(graph.program),
        axes=encode(axes).decode(),
        domain=domain,
        task=task,
        sources=(source,),
    )


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of a set of shards; equal sets have equal manifests. `kinds` counts graphs."""

    schema_version: int
    num_graphs: int
    num_structures: int
    num_ops: int
    num_sources: int
    versions: dict[str, list[str]]
    shards: tuple[Shard, ...]
    kinds: dict[str, int] = field(default_factory=dict)


def merge(paths: Iterable[Path], out: Path, versions: dict[str, list[str]]) -> Manifest:
    """Write shards, replacing others, with each graph of some files once, sorted by structure."""
    return write_set(out, merged_rows(paths), versions)


def merged_rows(paths: Iterable[Path]) -> list[GraphRow]:
    """Return the graphs of some files, each once, in the order of a set."""
    merged: dict[str, GraphRow] = {}
    for path in sorted(paths):
        for row in GRAPHS.read(path):
            previous = merged.get(row.full)
            merged[row.full] = row if previous is None else _union(previous, row)
    return sorted(merged.values(), key=lambda row: (row.structure, row.full))


def write_set(out: Path, rows: Sequence[GraphRow], versions: dict[str, list[str]]) -> Manifest:
    """Write rows in their order as shards with a manifest; existing shards are replaced."""
    manifest = Manifest(
        SCHEMA_VERSION,
        len(rows),
        len({row.structure for row in rows}),
        sum(len(row.op_sequence) for row in rows),
        sum(len(row.sources) for row in rows),
        {package: sorted(versions[package]) for package in sorted(versions)},
        write_shards(out, SHARD_NAME, rows, GRAPHS, text_bytes),
        dict(sorted(Counter(row.kind for row in rows).items())),
    )
    write_json(out / MANIFEST_FILE, manifest)
    return manifest


def read_set(folder: Path) -> tuple[Manifest, list[Path]]:
    """Read the manifest of a set; return it with the checked files."""
    if folder.is_dir() and not (folder / MANIFEST_FILE).exists():
        raise InputError(f"{folder}: holds no captured graphs; passnet extract makes them")
    manifest = read_json(folder / MANIFEST_FILE, Manifest)
    return manifest, check_shards(folder, manifest.shards, MANIFEST_FILE)


def write_result(folder: Path, record: Any, rows: Sequence[R], rows_format: Format[R]) -> None:
    """Write the record and rows of a job to its folder."""
    if rows:
        rows_format.write(folder / ROWS_FILE, rows)
    write_json(folder / RECORD_FILE, record)


def text_bytes(row: GraphRow) -> int:
    """Return the size of the text of a graph and its arguments."""
    return len(row.program) + len(row.tensors)


def _union(first: GraphRow, second: GraphRow) -> GraphRow:
    """Merge two rows of one graph; all but the sources is that of the first source by name."""
    fields = attrgetter("entry", "number", "train", "part")
    sources = tuple(sorted({*first.sources, *second.sources}, key=fields))
    return replace(first if sources[0] in first.sources else second, sources=sources)
