"""A suite: tasks, each of subgraphs that share one op sequence; stored as one Parquet file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from passnet.errors import GraphError, InputError, SuiteError
from passnet.graph.canonical import Fingerprints, fingerprints, op_sequence
from passnet.graph.files import find_graphs, read_sample
from passnet.graph.parse import parse_program
from passnet.graph.render import render_program
from passnet.graph.spec import Graph, TensorSpec
from passnet.records import SCHEMA_VERSION, decode

VERSION_KEY = b"passnet_schema_version"
MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class Source:
    """Where a subgraph was found: the ops [start, stop) of a capture of a net."""

    net: str
    library: str
    version: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class SuiteGraph:
    """One subgraph of a task, under a name unique in its suite."""

    task: str
    name: str
    graph: Graph
    source: Source | None = None


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
    """Tasks in order, with a hash over all they hold."""

    name: str
    tasks: tuple[Task, ...]
    content_hash: str


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


def write_suite(path: Path, suite: Suite) -> None:
    """Store a suite as Parquet, replacing the file whole or not at all."""
    rows = [_row(item) for task in suite.tasks for item in task.graphs]
    schema = _SCHEMA.with_metadata({VERSION_KEY: str(SCHEMA_VERSION).encode()})
    partial = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pylist(rows, schema), partial, compression="zstd")
    partial.replace(path)


def _row(item: SuiteGraph) -> dict[str, Any]:
    prints = fingerprints(item.graph)
    return {
        "task": item.task,
        "name": item.name,
        "program": render_program(item.graph.program),
        "tensors": msgspec.json.encode(item.graph.tensors).decode(),
        "op_sequence": list(op_sequence(item.graph.program)),
        "source": msgspec.json.encode(item.source).decode(),
        **asdict(prints),
    }


def load_suite(where: str) -> Suite:
    """The suite of a name that ships with passnet, of a Parquet file, or of a folder of graphs.

    Of a folder (as `passnet graph check` takes), graphs with one op sequence become one task.

    Raises:
        SuiteError: no such suite, or a file that is none.
        GraphError: a graph of a folder cannot be read.
    """
    path = Path(where)
    if path.is_dir():
        return _suite_of_folder(path)
    if not path.is_file():
        shipped = shipped_suites()
        if where not in shipped:
            raise SuiteError(
                f"no suite {where!r}; shipped are {', '.join(shipped) or 'none'}, or give a "
                "Parquet file or a folder of graphs"
            )
        path = shipped[where]
    return _read(path)


def shipped_suites() -> dict[str, Path]:
    """Name and file of every suite that ships with passnet."""
    package = Path(__file__).parents[1] / "suites"
    folder = package if package.is_dir() else Path(__file__).parents[3] / "suites"
    return {path.stem: path for path in sorted(folder.glob("*.parquet"))}


def _read(path: Path) -> Suite:
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as cause:
        raise SuiteError(f"{path}: not a Parquet file of a suite: {cause}") from cause
    version = (table.schema.metadata or {}).get(VERSION_KEY, b"").decode()
    if version != str(SCHEMA_VERSION):
        raise SuiteError(
            f"{path}: schema version {version or 'missing'}, this passnet reads {SCHEMA_VERSION}; "
            "rebuild the suite or install the matching passnet"
        )
    if table.num_rows > MAX_ROWS or not set(_SCHEMA.names) <= set(table.column_names):
        raise SuiteError(f"{path}: not the columns of a suite")
    return make_suite(path.stem, [_graph(row, path) for row in table.to_pylist()])


def _graph(row: dict[str, Any], path: Path) -> SuiteGraph:
    place = f"{path}: {row['task']}/{row['name']}"
    try:
        tensors = decode(row["tensors"], tuple[TensorSpec, ...], place)
        source = decode(row["source"], Source | None, place)  # type: ignore[arg-type]
        graph = Graph(parse_program(row["program"], place), tensors)
    except InputError as cause:
        raise SuiteError(f"{place}: {cause}") from cause
    stored = Fingerprints(row["structure"], row["literals"], row["full"])
    if fingerprints(graph) != stored:
        raise SuiteError(f"{place}: the graph does not have the fingerprints stored with it")
    return SuiteGraph(row["task"], row["name"], graph, source)


def _suite_of_folder(path: Path) -> Suite:
    graphs = []
    for folder in find_graphs(path):
        graph = read_sample(folder).graph
        ops = "\n".join(op_sequence(graph.program))
        task = f"ops_{hashlib.sha256(ops.encode()).hexdigest()[:8]}"
        name = str(folder.relative_to(path)) if folder != path else folder.name
        graphs.append(SuiteGraph(task, name, graph))
    if not graphs:
        raise GraphError(f"{path}: holds no graph (a folder with graph_net.json and model.py)")
    graphs.sort(key=lambda item: item.task)
    return make_suite(path.resolve().name, graphs)
