"""Graphs spliced from training rows, so that rare ops meet more neighbours than in captured nets.

Run it with `python -m recipes.spliced training OUT [--graphs N] [--seed S]`. OUT is a set of graphs
that `passnet train data OUT` mines like captured ones. What a small LLM cannot solve has ops, or
pairs of ops, that few rows hold (`benchmarks/unsolved_tasks.py`), and a teacher answers graphs that
no net holds just as well.

A graph is a chain of three rows of one dtype: the output of one is the argument of the next that
has its shape. Rows are drawn in proportion to how rare their rarest op is.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from passnet.core.records.serialise import make_folder
from passnet.core.terminal.progress import progress
from passnet.data.capture.store import GraphRow, GraphSource, row_of, write_set
from passnet.data.mine.cut import inferred_specs, single_assignment
from passnet.data.mine.literals import map_arg, map_op
from passnet.errors import GraphError, InputError
from passnet.graph.spec import Arg, Graph, Op, Param, Program, Ref, TensorSpec
from passnet.graph.text.files import graph_from_row
from passnet_loops.data.build import read_training

NUM_PARTS = 3
MAX_ELEMENTS = 2**21
RAREST = 30
"""Rows whose rarest op is in fewer rows than this are drawn no more often."""

Shape = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Part:
    """A graph of one output, the form of this output, and how often it is drawn."""

    graph: Graph
    output: TensorSpec
    weight: float


def parts_of(training: Path) -> list[Part]:
    """Return the training rows that can be parts."""
    rows = [row for row in read_training(training)[1] if row.verdict == "correct"]
    counts = Counter(op for row in rows for op in set(row.op_sequence))
    parts = []
    with progress("reading rows", len(rows)) as step:
        for row in rows:
            step(row.full[:12])
            with suppress(GraphError, InputError):
                graph = graph_from_row(row.program, row.tensors, row.full[:16])
                single = Graph(single_assignment(graph.program), graph.tensors)
                first, *others = single.program.outputs
                if others or not isinstance(first, Ref):
                    continue
                spec = inferred_specs(single).get(first.name)
                if spec is not None and spec.shape:
                    rarest = min(counts[op] for op in row.op_sequence)
                    parts.append(Part(single, spec, 1 / max(rarest, RAREST)))
    return parts


def spliced(parts: Sequence[Part]) -> Graph | None:
    """Return parts as one graph, each fed by the one before; None where one has no such argument.

    The first argument with the shape and dtype of a part's output takes it.
    """
    tensors: list[TensorSpec] = []
    ops: list[Op] = []
    last: TensorSpec | None = None
    for number, part in enumerate(parts):
        names = {name: f"p{number}_{name}" for name in _names(part.graph.program)}
        if last is not None:
            fed = [spec for spec in part.graph.tensors if _form(spec) == _form(last)]
            if not fed:
                return None
            names[fed[0].name] = last.name

        def renamed(arg: Arg, names: dict[str, str] = names) -> Arg:
            return Ref(names[arg.name]) if isinstance(arg, Ref) else arg

        tensors += [
            replace(spec, name=names[spec.name])
            for spec in part.graph.tensors
            if last is None or names[spec.name] != last.name
        ]
        for op in part.graph.program.ops:
            output = None if op.output is None else names[op.output]
            ops.append(replace(map_op(op, renamed), output=output))
        [output] = (map_arg(arg, renamed) for arg in part.graph.program.outputs)
        assert isinstance(output, Ref), "a part has one named output"
        last = replace(part.output, name=output.name)
    assert last is not None, "there is a part"
    params = tuple(Param(spec.name) for spec in tensors)
    return Graph(Program(params, tuple(ops), (Ref(last.name),)), tuple(tensors))


def _names(program: Program) -> Iterator[str]:
    yield from (param.name for param in program.params)
    yield from (op.output for op in program.ops if op.output is not None)


def _form(spec: TensorSpec) -> Shape:
    return spec.dtype, spec.shape


def chains(parts: Sequence[Part], draw: random.Random) -> Iterator[list[Part]]:
    """Yield chains of parts that fit each other."""
    takers: dict[Shape, list[Part]] = defaultdict(list)
    for part in parts:
        for form in {_form(spec) for spec in part.graph.tensors if spec.data is None}:
            takers[form].append(part)
    weights = [part.weight for part in parts]
    while True:
        chain = draw.choices(parts, weights)
        while len(chain) < NUM_PARTS and (next_ones := takers.get(_form(chain[-1].output))):
            chain += draw.choices(next_ones, [part.weight for part in next_ones])
        if len(chain) > 1:
            yield chain


def rows_of(parts: Sequence[Part], num_graphs: int, seed: int) -> list[GraphRow]:
    """Return so many different spliced graphs as rows."""
    draw = random.Random(seed)  # noqa: S311 (no secret)
    rows: dict[str, GraphRow] = {}
    with progress("splicing rows", num_graphs) as step:
        for chain in chains(parts, draw):
            graph = spliced(chain)
            if graph is None or sum(spec.num_elements for spec in graph.tensors) > MAX_ELEMENTS:
                continue
            with suppress(GraphError, InputError):
                row = row_of(graph, GraphSource(f"spliced/{seed}-{len(rows)}", 0), {}, "other")
                if row.structure not in rows:
                    rows[row.structure] = row
                    step(row.sources[0].entry)
            if len(rows) == num_graphs:
                return list(rows.values())
    return list(rows.values())


def main(training: Path, out: Path, num_graphs: int, seed: int) -> None:
    """Write a set of spliced graphs."""
    make_folder(out)
    manifest = write_set(out, rows_of(parts_of(training), num_graphs, seed), {})
    print(f"{out}: {manifest.num_graphs} graphs, {manifest.num_ops} ops")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("training", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    words = parser.parse_args()
    main(words.training, words.out, words.graphs, words.seed)
