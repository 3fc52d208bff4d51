"""Suites: tasks of subgraphs that share one op sequence, in one Parquet file."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.core.records.folders import is_inner
from passnet.core.records.parquet import FileLimits, Format
from passnet.core.records.serialise import decode, encode
from passnet.data.dataset.splits import Leak, RowKeys, SuiteKeys, leaks
from passnet.errors import GraphError, InputError, SuiteError, did_you_mean, neighbours, no_such
from passnet.graph.canonical import Fingerprints, fingerprints, op_sequence
from passnet.graph.spec import Graph
from passnet.graph.text.files import find_graphs, graph_from_row, read_sample
from passnet.graph.text.parse import parse_program
from passnet.graph.text.render import render_program
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.task import NetSource, Task, TaskGraph


@dataclass(frozen=True, slots=True)
class Suite:
    """Tasks in order, with a hash over their content; `notes` are about graphs left out.

    `version` is the one that its file names, such as 1.1; empty without one.
    """

    name: str
    tasks: tuple[Task, ...]
    content_hash: str
    notes: tuple[str, ...] = ()
    version: str = ""

    @property
    def graphs(self) -> list[TaskGraph]:
        """The graphs of all tasks, in order."""
        return [graph for task in self.tasks for graph in task.graphs]


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """A stored graph of a suite; `tensors` and `source` are JSON.

    The last columns follow from program and tensors; the fingerprints are compared on reading.
    """

    task: str
    name: str
    program: str
    tensors: str
    op_sequence: tuple[str, ...]
    structure: str
    literals: str
    full: str | None
    source: str


SUITES: Format[SuiteRow] = Format(
    SuiteRow,
    "a suite",
    hashes=("structure", "literals", "full"),
    limits=FileLimits(file_bytes=64 * 2**20, unpacked_bytes=256 * 2**20),
)
"""The file format of suites; the demo suite unpacks to 0.2 MB for 78 graphs."""


def make_suite(name: str, graphs: Sequence[TaskGraph]) -> Suite:
    """Return the suite of some subgraphs, tasks and graphs in the given order.

    Raises SuiteError without graphs, for a name that `Task` refuses, for two graphs of one name, or
    a task of different ops.
    """
    if not graphs:
        raise SuiteError(f"suite {name} holds no graph")
    tasks: dict[str, list[TaskGraph]] = {}
    names: set[str] = set()
    for graph in graphs:
        if graph.name in names:
            raise SuiteError(f"suite {name} holds two graphs named {graph.name}")
        names.add(graph.name)
        tasks.setdefault(graph.task, []).append(graph)
        first = tasks[graph.task][0]
        if op_sequence(graph.graph.program) != op_sequence(first.graph.program):
            raise SuiteError(
                f"task {graph.task}: {graph.name} has another op sequence than {first.name}"
            )
    content = _content_hash((row.task, row.name, fingerprints(row.graph).full) for row in graphs)
    in_order = tuple(Task(task, tuple(members)) for task, members in tasks.items())
    return Suite(name, in_order, content)


def only_tasks(suite: Suite, names: Sequence[str]) -> Suite:
    """Return some tasks of a suite, in its order; InputError names a task that it lacks."""
    all_names = [task.name for task in suite.tasks]
    for name in names:
        if name not in all_names:
            raise InputError(f"suite {suite.name} has {no_such('task', name, all_names)}")
    graphs = [graph for graph in suite.graphs if graph.task in names]
    return replace(make_suite(suite.name, graphs), notes=suite.notes, version=suite.version)


def held_out_graphs(held_out: Suite | None, task: str) -> list[TaskGraph]:
    """Return the graphs of a task in a suite of held-out shapes."""
    tasks = held_out.tasks if held_out else ()
    return [graph for unseen in tasks if unseen.name == task for graph in unseen.graphs]


def write_suite(path: Path, suite: Suite) -> None:
    """Store a suite as Parquet whole, or raise SuiteError for a value that cannot be stored."""
    SUITES.write(path, [row_of_graph(graph) for graph in suite.graphs], suite.version)


def row_of_graph(graph: TaskGraph) -> SuiteRow:
    """Return a graph of a suite as a row, or raise SuiteError for a value that cannot be stored."""
    prints = fingerprints(graph.graph)
    try:
        tensors = encode(graph.graph.tensors).decode()
    except ValueError as cause:
        raise SuiteError(f"{graph.task}/{graph.name} cannot be stored: {cause}") from cause
    return SuiteRow(
        graph.task,
        graph.name,
        render_program(graph.graph.program),
        tensors,
        op_sequence(graph.graph.program),
        prints.structure,
        prints.literals,
        prints.full,
        encode(graph.source).decode(),
    )


def load_suite(where: str) -> Suite:
    """Load a shipped suite by name, a Parquet file, or a folder of graphs.

    The name of a shipped suite is never a folder beside it, which is `./NAME`. Of a folder, graphs
    with one op sequence become one task; unreadable graphs are left out, with a note each. Raises
    SuiteError or GraphError if there is no suite or graph.
    """
    shipped = shipped_suites()
    path = shipped.get(where, Path(where))
    if path.is_dir():
        return _suite_of_folder(path)
    if not path.is_file():
        hint = did_you_mean(where, [*shipped, *neighbours(path)])
        raise SuiteError(
            f"no suite {where!r}; shipped are {', '.join(shipped) or 'none'}, or give a "
            f"Parquet file or a folder of graphs{hint}"
        )
    return _read(path)


def suite_of_hash(name: str, content_hash: str) -> Suite | None:
    """Return the version of a shipped suite that has this content; None if there is none."""
    for version in shipped_suites():
        if version.partition("@")[0] == name:
            suite = load_suite(version)
            if suite.content_hash == content_hash:
                return suite
    return None


def _read(path: Path) -> Suite:
    try:
        graphs = [graph_of_row(row, f"{path}: {row.task}/{row.name}") for row in SUITES.read(path)]
    except InputError as cause:
        raise SuiteError(str(cause)) from cause
    try:
        suite = make_suite(path.stem, graphs)
    except SuiteError as cause:
        raise SuiteError(f"{path}: {cause}") from cause
    return replace(suite, version=SUITES.content_version(path))


def graph_of_row(row: SuiteRow, where: str) -> TaskGraph:
    """Return the graph of a row at a place named in errors.

    Raises GraphError for no graph, SuiteError for a graph of other fingerprints.
    """
    source = decode(row.source, NetSource | None, where)  # type: ignore[arg-type]
    if row.tensors == "[]":  # nothing is known of its arguments
        graph = Graph(parse_program(row.program, where), ())
    else:
        graph = graph_from_row(row.program, row.tensors, where)
    if fingerprints(graph) != Fingerprints(row.structure, row.literals, row.full):
        raise SuiteError(f"{where}: the graph does not have the fingerprints stored with it")
    return TaskGraph(row.task, row.name, graph, source)


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
        name = str(folder.relative_to(path)) if folder != path else folder.resolve().name
        if not is_inner(name):
            notes.append(f"left out: {name!r} is no name of a graph; rename its folder")
            continue
        graphs.append(TaskGraph(task, name, graph))
    if not graphs and notes:
        raise GraphError(f"{path}: holds no graph that can be read; {notes[0]}")
    if not graphs:
        raise GraphError(f"{path}: holds no graph (a folder with graph_net.json and model.py)")
    graphs.sort(key=lambda graph: graph.task)
    return replace(make_suite(path.resolve().name, graphs), notes=tuple(notes))


def benchmarks() -> list[str]:
    """Return the shipped suites that no LLM may be trained on, each in its newest version."""
    names = shipped_suites()
    return [name for name in names if name.startswith("passbench-") and "@" not in name]


def read_suite_keys(names: Iterable[str]) -> SuiteKeys:
    """Return the op sequences and structures of suites, given by names or files.

    Raises SuiteError for a missing suite, InputError for two of one name.
    """
    keys = SuiteKeys({}, {}, {})
    shipped = shipped_suites()
    for where in dict.fromkeys(names):
        if where in shipped:  # its columns can be trusted, and need no parser
            name, rows = shipped[where].stem, list(SUITES.read(shipped[where]))
        else:
            suite = load_suite(where)
            name, rows = suite.name, [row_of_graph(graph) for graph in suite.graphs]
        content = _content_hash((row.task, row.name, row.full) for row in rows)
        if keys.hashes.setdefault(name, content) != content:
            raise InputError(f"two suites are named {name}; rename one")
        for row in rows:
            keys.sequences.setdefault(row.op_sequence, name)
            keys.structures.setdefault(row.structure, name)
    return keys


def task_leaks(tasks: Mapping[str, Task], evaluation: SuiteKeys) -> list[Leak]:
    """Return why tasks, each named by its key as the row, must not be learned from."""
    rows = [
        RowKeys(name, fingerprints(graph.graph).structure, task.ops)
        for name, task in tasks.items()
        for graph in task.graphs
    ]
    return leaks(rows, dict.fromkeys(tasks, "train"), evaluation)


def _content_hash(graphs: Iterable[tuple[str, str, str | None]]) -> str:
    """Hash the task, name and full fingerprint of graphs; no name holds what separates them."""
    digest = hashlib.sha256()
    for parts in graphs:
        digest.update("{}\0{}\0{}\n".format(*parts).encode())
    return digest.hexdigest()
