"""The graphs that one pass folder is judged on, of a suite or of none."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from passnet.core.records.folders import is_inner
from passnet.errors import SuiteError
from passnet.graph.canonical import op_sequence
from passnet.graph.spec import Graph


@dataclass(frozen=True, slots=True)
class NetSource:
    """The origin of a subgraph: the ops [start, stop) of a capture of a net."""

    net: str
    library: str
    version: str
    start: int
    stop: int
    domain: str = ""
    """Domain of the net; empty where it is not known."""


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """One graph of a task, under a name that is unique in its suite."""

    task: str
    name: str
    graph: Graph
    source: NetSource | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """Graphs for one pass folder to serve; they share one op sequence.

    Files and folders are named after tasks and graphs: a task has the name of a file, and a graph
    that of a path within a folder. Raises SuiteError for another name.
    """

    name: str
    graphs: tuple[TaskGraph, ...]

    def __post_init__(self) -> None:
        if not is_inner(self.name) or "/" in self.name:
            raise SuiteError(f"{self.name[:99]!r} is no name of a task: give that of a file")
        for graph in self.graphs:
            if not is_inner(graph.name):
                raise SuiteError(
                    f"task {self.name}: {graph.name[:99]!r} is no name of a graph: give that of a "
                    "file, or a path within a folder"
                )

    @property
    def ops(self) -> tuple[str, ...]:
        """The op sequence that the graphs share."""
        return op_sequence(self.graphs[0].graph.program)


def task_name(ops: Sequence[str]) -> str:
    """Return the name of a task: the first ops by name, and a hash of all."""
    words = [op.rsplit(".", 1)[-1].strip("_") for op in ops[:3]]
    return "-".join([*words, hashlib.sha256("\n".join(ops).encode()).hexdigest()[:8]])


def task_of(name: str, graphs: Mapping[str, Graph]) -> Task:
    """Return the task of some graphs, given by their names, that are in no suite."""
    return Task(name, tuple(TaskGraph(name, label, graph) for label, graph in graphs.items()))
