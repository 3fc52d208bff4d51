"""A small form of a suite: the same tasks with a few graphs each, to be judged in a few hours.

Run it with `python recipes/passbench_small.py SUITE OUT [NUM_GRAPHS]`, by default one graph a task:
`python recipes/passbench_small.py passbench-v1 suites/passbench-v1-small.parquet`. Graphs come in
the order of a hash of their names, so that nobody chose them; in a task, dtypes take turns.
"""

import hashlib
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from passnet.judge.suite.suite import load_suite, make_suite, write_suite
from passnet.judge.task import Task, TaskGraph
from passnet_audit.suites.balance import turns

NUM_GRAPHS = 1


def some_graphs(task: Task, num_graphs: int) -> list[TaskGraph]:
    """Return up to so many graphs of a task, with its dtypes in turn."""
    groups: dict[str, list[TaskGraph]] = {}
    for graph in sorted(
        task.graphs, key=lambda graph: hashlib.sha256(graph.name.encode()).digest()
    ):
        groups.setdefault(_dtype(graph), []).append(graph)
    return turns(list(groups.values()))[:num_graphs]


def _dtype(graph: TaskGraph) -> str:
    """Return the dtype of most tensors of a graph."""
    return Counter(spec.dtype for spec in graph.graph.tensors).most_common(1)[0][0]


def main(words: Iterable[str]) -> None:
    """Make the suite and write it."""
    name, out, *numbers = words
    num_graphs = int(numbers[0]) if numbers else NUM_GRAPHS
    path = Path(out)
    graphs = [graph for task in load_suite(name).tasks for graph in some_graphs(task, num_graphs)]
    suite = make_suite(path.stem, graphs)
    write_suite(path, suite)
    print(f"{path.stem}: {len(suite.tasks)} tasks, {len(graphs)} graphs, {suite.content_hash}")
    print(dict(Counter(_dtype(graph) for graph in graphs)))


if __name__ == "__main__":
    main(sys.argv[1:])
