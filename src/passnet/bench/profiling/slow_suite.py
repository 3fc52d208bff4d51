"""A suite of the op sequences on which compiled calls lose most."""

import hashlib
from collections.abc import Mapping, Sequence

from passnet.bench.profiling.record import ProfileItem
from passnet.bench.profiling.study import SlowSequence
from passnet.errors import InputError
from passnet.graph.text.files import graph_from_row
from passnet.judge.suite.suite import Suite, make_suite
from passnet.judge.task import NetSource, TaskGraph


def slow_suite(
    name: str, sequences: Sequence[SlowSequence], items: Mapping[str, ProfileItem]
) -> Suite:
    """The suite with a task for each op sequence, of the items that surely lose.

    Raises:
        InputError: no item of these sequences is there.
    """
    graphs = []
    for sequence in sequences:
        task = _task_name(sequence.ops)
        for item in (items[name] for name in sequence.names if name in items):
            source = NetSource("", item.library, "", 0, 0, item.domain)
            graph = graph_from_row(item.program, item.tensors, item.name)
            graphs.append(TaskGraph(task, f"{task}-{item.name}", graph, source))
    if not graphs:
        raise InputError("no subgraph surely loses, so there is no suite to make")
    return make_suite(name, graphs)


def _task_name(ops: Sequence[str]) -> str:
    words = [op.rsplit(".", 1)[-1].strip("_") for op in ops[:3]]
    digest = hashlib.sha256("\n".join(ops).encode()).hexdigest()[:8]
    return "-".join([*words, digest])
