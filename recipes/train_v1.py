"""The training suite: 1,020 tasks that share no op sequence and no structure with a benchmark.

Run it with `python -m recipes.train_v1 training captures FOLDER [--jobs N]`; it takes an hour and a
half of a core, and goes on where it was stopped. FOLDER gets the suite, and in `work` what it is
made of:

1. structures of the training data that the judge found correct, apart from all suites that ship, as
   they are, in other dtypes, and with one of their sizes doubled or halved;
2. tasks selected in the shares of PassBench, and their subgraphs admitted (docs/suites.md).
"""

import argparse
import hashlib
import inspect
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import torch

from passnet.core.jobs.run_plan import RunPlan
from passnet.core.records.serialise import make_folder
from passnet.core.terminal.progress import progress
from passnet.data.capture.record import Domain
from passnet.data.capture.store import GRAPHS, GraphRow, read_set
from passnet.data.dataset.store import (
    MANIFEST_FILE,
    Occurrence,
    Provenance,
    SubgraphRow,
    row_of_graph,
    write_dataset,
)
from passnet.data.mine.literals import map_arg, with_ops
from passnet.errors import GraphError, InputError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Arg, Graph, Op, Slice
from passnet.graph.spec import Sequence as Parts
from passnet.graph.text.files import graph_from_row
from passnet.graph.text.meta import input_mib
from passnet.graph.values.effects import last_name
from passnet.graph.values.fake import infer_shapes
from passnet.judge.suite.shipped import shipped_suites
from passnet.judge.suite.suite import read_suite_keys
from passnet_audit.suites.assembly import AssemblyPlan, AssemblyWork, assemble
from passnet_audit.suites.balance import Shares
from passnet_audit.suites.selection import SelectionPlan
from passnet_loops.data.build import read_training
from passnet_loops.data.examples import TrainingRow
from recipes.passbench_v1 import describe, domain_shares, other_dtypes

SUITE = "train-v1"
NUM_TASKS, NUM_SEQUENCES = 1020, 3000
"""Tasks of the suite, and op sequences that they are selected from."""

MAX_MIB = 8.0
MAX_SIZE = 4096
"""Sizes beyond this are halved, others doubled."""

PLAN = AssemblyPlan(
    SelectionPlan(
        "fusible", NUM_TASKS, min_graphs=3, max_graphs=4, min_ops=2, max_mib=MAX_MIB,
        levels_a_bucket=1,
    ),
    max_gflops=0.3,
    compiles=False,
)  # fmt: skip
"""Fewer and smaller graphs a task than a benchmark's, as each is judged many times."""


def main(training: Path, captures: Path, folder: Path, num_workers: int) -> None:
    """Make the suite."""
    manifest, files = read_set(captures)
    corpus = [row for file in files for row in GRAPHS.read(file)]
    work = folder / "work"
    if not (work / "rows" / MANIFEST_FILE).exists():
        make_folder(work / "rows")
        rows = {row.full: row for row in made_rows(_apart(read_training(training)[1]), corpus)}
        write_dataset(work / "rows", rows.values(), manifest.versions)
    shares = Shares(domain_shares(corpus), fills=True, least_graphs=2)
    run = RunPlan(num_workers=num_workers, resume=True)
    place = AssemblyWork(
        folder / f"{SUITE}.parquet", work / SUITE, run, partial(progress, "admitting subgraphs")
    )
    describe(SUITE, assemble(work / "rows", replace(PLAN, shares=shares), place).tasks)


def _apart(rows: Sequence[TrainingRow]) -> list[TrainingRow]:
    """Return correct rows of some op sequences that no suite has, in the order of their hashes."""
    names = [name for name in shipped_suites() if not name.startswith("train-")]
    keys = [read_suite_keys([name]) for name in names]
    sequences = {ops for each in keys for ops in each.sequences}
    structures = {structure for each in keys for structure in each.structures}
    by_ops: dict[tuple[str, ...], list[TrainingRow]] = defaultdict(list)
    for row in rows:
        if row.verdict == "correct" and row.structure not in structures:
            by_ops[row.op_sequence].append(row)
    kept = [ops for ops in by_ops if ops not in sequences]
    kept.sort(key=lambda ops: hashlib.sha256("\n".join(ops).encode()).digest())
    return [row for ops in kept[:NUM_SEQUENCES] for row in by_ops[ops]]


def made_rows(rows: Sequence[TrainingRow], corpus: Sequence[GraphRow]) -> Iterator[SubgraphRow]:
    """Yield each row as it is, in other dtypes and at other sizes, with its place in its net."""
    nets: dict[str, list[GraphRow]] = defaultdict(list)
    for graph_row in corpus:
        for source in graph_row.sources:
            nets[source.entry].append(graph_row)
    with progress("making subgraphs", len(rows)) as step:
        for row in rows:
            step(row.full[:12])
            place = next(_places(row.op_sequence, nets[row.net]), None)
            if place is None:
                continue
            occurrence, domain = place
            graph = graph_from_row(row.program, row.tensors, row.full[:16])
            for variant, made in {
                "": graph,
                **dict(other_dtypes(graph)),
                **other_sizes(graph),
            }.items():
                origin = row.full if variant else ""
                provenance = Provenance(
                    ("fusible",), variant, origin, domain, (row.net,), 1, 1, (occurrence,)
                )
                yield row_of_graph(made, provenance, row.full[:16])


def _places(ops: Sequence[str], graphs: Sequence[GraphRow]) -> Iterator[tuple[Occurrence, Domain]]:
    """Yield the places of an op sequence in graphs."""
    for graph in graphs:
        for start in range(len(graph.op_sequence) - len(ops) + 1):
            if graph.op_sequence[start : start + len(ops)] == tuple(ops):
                yield Occurrence(graph.full, start, start + len(ops)), graph.domain


def other_sizes(graph: Graph) -> Mapping[str, Graph]:
    """Return a graph with its first or its last size changed wherever it stands, if it still runs.

    The structure stays the same; small sizes are doubled, as an index into them stays within.
    """
    largest = max(graph.tensors, key=lambda spec: spec.num_elements, default=None)
    sizes = [size for size in (largest.shape if largest else ()) if size > 1]
    made: dict[str, Graph] = {}
    for old in dict.fromkeys(sizes[:1] + sizes[-1:]):
        new = 2 * old if old <= MAX_SIZE else old // 2
        try:
            other = with_size(graph, old, new)
        except (GraphError, InputError):
            continue
        if input_mib(other.tensors) <= MAX_MIB:
            made[f"{old}={new}"] = other
    return made


def with_size(graph: Graph, old: int, new: int) -> Graph:
    """Return a graph with one size exchanged for another, in shapes and in sizes that ops name.

    Raises:
        GraphError: its ops do not take these shapes, or an argument has fixed values.
    """

    def changed(arg: Arg) -> Arg:
        return new if type(arg) is int and arg == old else arg

    def resized(op: Op) -> Op:
        if op.target in ("operator.getitem", "operator.setitem"):
            index = _with_bounds(op.args[1], changed)
            return replace(op, args=(op.args[0], index, *op.args[2:]))
        places = _size_places(op)
        args = tuple(map_arg(arg, changed) if place in places else arg
                     for place, arg in enumerate(op.args))  # fmt: skip
        kwargs = tuple((name, map_arg(arg, changed) if name in SIZE_ARGUMENTS else arg)
                       for name, arg in op.kwargs)  # fmt: skip
        return replace(op, args=args, kwargs=kwargs)

    tensors = []
    for spec in graph.tensors:
        shape = tuple(new if size == old else size for size in spec.shape)
        if shape != spec.shape and spec.data is not None:
            raise GraphError(f"{spec.name} has fixed values")
        tensors.append(replace(spec, shape=shape))
    ops = [resized(op) for op in graph.program.ops]
    other = Graph(with_ops(graph.program, ops), tuple(tensors))
    infer_shapes(other, "a subgraph at another size")
    if fingerprints(other).structure != fingerprints(graph).structure:
        raise GraphError("another structure")
    return other


SIZE_ARGUMENTS = frozenset([
    "size", "sizes", "shape", "output_size", "normalized_shape", "split_size", "split_sizes",
    "split_size_or_sections", "start", "end", "length", "num_classes",
])  # fmt: skip
"""Names of arguments of ops that hold sizes, or bounds of a range within one."""


def _with_bounds(index: Arg, changed: Callable[[Arg], Arg]) -> Arg:
    """Return an index with the bounds of its slices changed; numbers and steps stay."""
    if isinstance(index, Parts):
        return replace(index, items=tuple(_with_bounds(part, changed) for part in index.items))
    if isinstance(index, Slice):
        return replace(index, start=changed(index.start), stop=changed(index.stop))
    return index


def _size_places(op: Op) -> set[int]:
    """Return the positions of a call's arguments that hold sizes. Sizes that are not in a list, as
    in `x.view(2, -1)`, go on to the last argument.
    """
    places: set[int] = set()
    for place, is_list in _size_parameters(op.target):
        if place < len(op.args):
            is_apart = is_list and not isinstance(op.args[place], Parts)
            places |= {*range(place, len(op.args))} if is_apart else {place}
    return places


@cache
def _size_parameters(target: str) -> frozenset[tuple[int, bool]]:
    """Return the positions of sizes in an op's signatures, and whether several make a list."""
    name = last_name(target)
    function = getattr(torch.nn.functional, name, None)
    if target.startswith("torch.nn.functional.") and inspect.isfunction(function):
        names = enumerate(inspect.signature(function).parameters)
        return frozenset((place, False) for place, name in names if name in SIZE_ARGUMENTS)
    return frozenset(
        (place, argument.name in ("size", "shape") and str(argument.type) == "List[int]")
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        for place, argument in enumerate(schema.arguments)
        if argument.name in SIZE_ARGUMENTS
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("training", type=Path)
    parser.add_argument("captures", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    words = parser.parse_args()
    main(words.training, words.captures, words.folder, words.jobs)
