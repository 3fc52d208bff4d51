"""A suite: tasks, each of subgraphs that share one op sequence; stored as one Parquet file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from passnet.errors import (
    GraphError,
    InputError,
    SuiteError,
    boundary,
    did_you_mean,
    neighbours,
)
from passnet.graph.canonical import Fingerprints, fingerprints, op_sequence
from passnet.graph.files import find_graphs, read_sample
from passnet.graph.meta import check_arguments, check_spec
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.records.parquet_pages import unpacked_bytes
from passnet.records.serialise import SCHEMA_VERSION, decode, encode

VERSION_KEY = b"passnet_schema_version"
MAX_ROWS = 1_000_000
MAX_FILE_BYTES = 64 * 2**20
"""Largest suite file that is read."""

MAX_SUITE_BYTES = 256 * 2**20
"""Most text that a suite file may unpack to; the demo suite has 0.2 MB for 78 graphs."""


@dataclass(frozen=True, slots=True)
class NetSource:
    """Where a subgraph was found: the ops [start, stop) of a capture of a net; `domain` is that of
    the net, empty where it is not known.
    """

    net: str
    library: str
    version: str
    start: int
    stop: int
    domain: str = ""


@dataclass(frozen=True, slots=True)
class SuiteGraph:
    """One subgraph of a task, under a name unique in its suite."""

    task: str
    name: str
    graph: Graph
    source: NetSource | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Subgraphs that one pass folder is to serve; they share one op sequence."""

    name: str
    graphs: tuple[SuiteGraph, ...]

    @property
    def ops(self) -> tuple[str, ...]:
        """The op sequence that the graphs share."""
        return op_sequence(self.graphs[0].graph.program)


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks in order, with a hash over all they hold; `notes` tells what was left out, and why."""

    name: str
    tasks: tuple[Task, ...]
    content_hash: str
    notes: tuple[str, ...] = ()


_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("name", pa.string()),
        ("program", pa.string()),
        ("tensors", pa.string()),
        ("op_sequence", pa.list_(pa.string())),
        ("structure", pa.string()),
        ("literals", pa.string()),
        ("full", pa.string()),
        ("source", pa.string()),
    ]
)


_TEXTS = [item.name for item in _SCHEMA if item.type == pa.string()]
"""The columns that are read; the op sequence follows from the program, and is for other readers."""


def make_suite(name: str, graphs: Sequence[SuiteGraph]) -> Suite:
    """The suite of some subgraphs, tasks and graphs in the order given.

    Raises:
        SuiteError: there are none, two share a name, or a task's graphs differ in their ops.
    """
    if not graphs:
        raise SuiteError(f"suite {name} holds no graph")
    tasks: dict[str, list[SuiteGraph]] = {}
    names: set[str] = set()
    digest = hashlib.sha256()
    for item in graphs:
        if item.name in names:
            raise SuiteError(f"suite {name} holds two graphs named {item.name}")
        names.add(item.name)
        tasks.setdefault(item.task, []).append(item)
        full = fingerprints(item.graph).full
        digest.update(f"{item.task}\0{item.name}\0{full}\n".encode())
    made = tuple(Task(task, tuple(items)) for task, items in tasks.items())
    for task in made:
        for item in task.graphs:
            if op_sequence(item.graph.program) != task.ops:
                raise SuiteError(
                    f"task {task.name}: {item.name} has another op sequence than "
                    f"{task.graphs[0].name}"
                )
    return Suite(name, made, digest.hexdigest())


def only_tasks(suite: Suite, names: Sequence[str]) -> Suite:
    """Some tasks of a suite, in its order.

    Raises:
        InputError: it has no such task.
    """
    known = [task.name for task in suite.tasks]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; it has {', '.join(known)}"
            raise InputError(f"suite {suite.name} has no task {name!r}{hint}")
    graphs = [item for task in suite.tasks if task.name in names for item in task.graphs]
    return replace(make_suite(suite.name, graphs), notes=suite.notes)


def write_suite(path: Path, suite: Suite) -> None:
    """Store a suite as Parquet, replacing the file whole or not at all."""
    rows = [_row(item) for task in suite.tasks for item in task.graphs]
    schema = _SCHEMA.with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
    partial = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(rows, schema), partial, compression="zstd")
    partial.replace(path)


def _row(item: SuiteGraph) -> dict[str, Any]:
    prints = fingerprints(item.graph)
    try:
        tensors = encode(item.graph.tensors)
    except ValueError as cause:
        raise SuiteError(f"{item.task}/{item.name} cannot be stored: {cause}") from cause
    return {
        "task": item.task,
        "name": item.name,
        "program": render_program(item.graph.program),
        "tensors": tensors.decode(),
        "op_sequence": list(op_sequence(item.graph.program)),
        "source": encode(item.source).decode(),
        **asdict(prints),
    }


def load_suite(where: str) -> Suite:
    """The suite of a name that ships with passnet, of a Parquet file, or of a folder of graphs.

    Of a folder (as `passnet graph check` takes), graphs with one op sequence become one task;
    graphs that cannot be read are left out, with a note each.

    Raises:
        SuiteError: no such suite, or a file that is none.
        GraphError: a folder holds no graph that can be read.
    """
    path = Path(where)
    if path.is_dir():
        return _suite_of_folder(path)
    if not path.is_file():
        shipped = shipped_suites()
        if where not in shipped:
            hint = did_you_mean(where, [*shipped, *neighbours(path)])
            raise SuiteError(
                f"no suite {where!r}; shipped are {', '.join(shipped) or 'none'}, or give a "
                f"Parquet file or a folder of graphs{hint}"
            )
        path = shipped[where]
    return _read(path)


def shipped_suites() -> dict[str, Path]:
    """Name and file of every suite that ships with passnet."""
    package = Path(__file__).parents[1] / "suites"
    folder = package if package.is_dir() else Path(__file__).parents[3] / "suites"
    return {path.stem: path for path in sorted(folder.glob("*.parquet"))}


def _read(path: Path) -> Suite:
    with boundary(SuiteError, f"{path}: not a Parquet file of a suite"):
        table = _table(path)
        rows = table.to_pylist()
    empty = [name for name in _TEXTS if table.column(name).null_count and name != "full"]
    if empty:
        raise SuiteError(f"{path}: a row has no {empty[0]}")
    return make_suite(path.stem, [_graph(row, path) for row in rows])


def _table(path: Path) -> pa.Table:
    """The columns of text, refused before they are unpacked if they would be too large.

    They are read as dictionaries, in which a text that many rows share stands once.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise SuiteError(f"{path}: larger than {MAX_FILE_BYTES} bytes, not read")
    data = path.read_bytes()
    meta = pq.read_metadata(pa.BufferReader(data))
    schema = meta.schema.to_arrow_schema()
    version = (schema.metadata or {}).get(VERSION_KEY, b"")
    if version != str(SCHEMA_VERSION).encode():
        raise SuiteError(
            f"{path}: schema version {version.decode(errors='replace')[:20] or 'missing'}, this "
            f"passnet reads {SCHEMA_VERSION}; rebuild the suite or install the matching passnet"
        )
    if not schema.equals(_SCHEMA):
        raise SuiteError(f"{path}: not the columns of a suite")
    _check_unpacked(_unpacked_bytes(data, meta, path), path)
    file = pq.ParquetFile(pa.BufferReader(data), metadata=meta, read_dictionary=_TEXTS)
    table = file.read(_TEXTS, use_threads=False)
    table.validate(full=True)
    chunks = [chunk for column in table.columns for chunk in column.chunks]
    _check_unpacked(sum(_text_bytes(chunk) for chunk in chunks), path)
    return table


def _check_unpacked(num_bytes: int, path: Path) -> None:
    if num_bytes > MAX_SUITE_BYTES:
        raise SuiteError(f"{path}: unpacks to {num_bytes} bytes, more than {MAX_SUITE_BYTES}")


def _unpacked_bytes(data: bytes, meta: pq.FileMetaData, path: Path) -> int:
    places = [_SCHEMA.get_field_index(name) for name in _TEXTS]
    groups = [meta.row_group(index) for index in range(meta.num_row_groups)]
    chunks = [group.column(place) for group in groups for place in places]
    num_values = [chunk.num_values for chunk in chunks]
    if min(num_values, default=0) < 0 or sum(num_values) > MAX_ROWS * len(places):
        raise SuiteError(f"{path}: more than {MAX_ROWS} rows")
    return sum(unpacked_bytes(data, chunk) for chunk in chunks)


def _text_bytes(texts: pa.DictionaryArray) -> int:
    lengths = pc.call_function("binary_length", [texts.dictionary])
    return pc.call_function("sum", [lengths.take(texts.indices)]).as_py() or 0


def _graph(row: dict[str, Any], path: Path) -> SuiteGraph:
    place = f"{path}: {row['task']}/{row['name']}"
    try:
        tensors = decode(row["tensors"], tuple[TensorSpec, ...], place)
        for item in tensors:
            check_spec(item, place)
        source = decode(row["source"], NetSource | None, place)  # type: ignore[arg-type]
        graph = Graph(parse_program(row["program"], place), tensors)
        found = fingerprints(graph)
        if tensors:
            check_arguments(graph.program, tensors, place)
    except InputError as cause:
        raise SuiteError(f"{place}: {cause}") from cause
    if found != Fingerprints(row["structure"], row["literals"], row["full"]):
        raise SuiteError(f"{place}: the graph does not have the fingerprints stored with it")
    return SuiteGraph(row["task"], row["name"], graph, source)


def _suite_of_folder(path: Path) -> Suite:
    graphs = []
    notes = []
    for folder in find_graphs(path):
        try:
            graph = read_sample(folder).graph
        except GraphError as cause:
            notes.append(f"left out: {cause}")
            continue
        ops = "\n".join(op_sequence(graph.program))
        task = f"ops_{hashlib.sha256(ops.encode()).hexdigest()[:8]}"
        name = str(folder.relative_to(path)) if folder != path else folder.name
        graphs.append(SuiteGraph(task, name, graph))
    if not graphs and notes:
        raise GraphError(f"{path}: holds no graph that can be read; {notes[0]}")
    if not graphs:
        raise GraphError(f"{path}: holds no graph (a folder with graph_net.json and model.py)")
    graphs.sort(key=lambda item: item.task)
    return replace(make_suite(path.resolve().name, graphs), notes=tuple(notes))
