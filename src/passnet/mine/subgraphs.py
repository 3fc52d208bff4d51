"""The subgraphs of a graph: ranges of ops of three kinds, cut out as graphs of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.errors import CutError, FusionError
from passnet.graph.spec import Graph
from passnet.mine.cut import cut, infer, single_assignment
from passnet.mine.fusion import fusion_plan
from passnet.mine.ranges import fusible_ranges

Kind: TypeAlias = Literal["classical", "fusible", "single"]
"""classical: a pattern that repeats in the corpus. fusible: what a compiler makes into few kernels.
single: one op.
"""

KINDS: tuple[Kind, ...] = ("classical", "fusible", "single")


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The ops [start, stop) of a graph, as a graph."""

    kind: Kind
    start: int
    stop: int
    graph: Graph


@dataclass(frozen=True, slots=True)
class Refusal:
    """A range that cannot be a graph of its own, and why; `start` is 0 and `stop` 0 where it is the
    graph as a whole that has no ranges of this kind.
    """

    kind: Kind
    start: int
    stop: int
    reason: str


def subgraphs(
    graph: Graph,
    classical: Sequence[tuple[int, int]] = (),
    kinds: Iterable[Kind] = KINDS,
    where: str = "graph",
) -> Iterator[Subgraph | Refusal]:
    """The subgraphs of a graph, kind by kind, in the order of their ranges.

    Args:
        graph: with the specs of its arguments.
        classical: the ranges that a corpus was folded into; see `folding.ranges`.
        kinds: those wanted.
        where: named in what is refused.

    Raises:
        GraphError: an op refuses the shapes it is given.
    """
    program = single_assignment(graph.program)
    single = Graph(program, graph.tensors)
    seen = infer(single)
    for kind in kinds:
        try:
            ranges = _ranges(kind, single, classical, where)
        except FusionError as cause:
            yield Refusal(kind, 0, 0, str(cause))
            continue
        for start, stop in ranges:
            try:
                yield Subgraph(kind, start, stop, cut(program, start, stop, seen))
            except CutError as cause:
                yield Refusal(kind, start, stop, str(cause))


def _ranges(
    kind: Kind, graph: Graph, classical: Sequence[tuple[int, int]], where: str
) -> Sequence[tuple[int, int]]:
    if kind == "classical":
        return classical
    if kind == "single":
        return [(place, place + 1) for place in range(len(graph.program.ops))]
    return fusible_ranges(fusion_plan(graph, where).num_kernels())
