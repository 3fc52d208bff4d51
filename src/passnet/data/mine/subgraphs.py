"""The subgraphs of a graph: ranges of ops of three kinds, cut out as graphs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.data.mine.cut import (
    Parent,
    cut_range,
    inferred_specs,
    parent_of,
    single_assignment,
    trimmed_range,
)
from passnet.data.mine.plateaus import fusible_ranges
from passnet.errors import CutError, FusionError
from passnet.graph.spec import Graph, Ref
from passnet.inductor.fusion import fusion_plan

SubgraphKind: TypeAlias = Literal["classical", "fusible", "single"]
"""classical: a pattern that repeats in the corpus. fusible: a range that a compiler fuses into few
kernels. single: one op.
"""

SUBGRAPH_KINDS: tuple[SubgraphKind, ...] = ("classical", "fusible", "single")

OpRange: TypeAlias = tuple[int, int]

MAX_TRIMMED_OPS = 4
"""The most ops that a classical range may lose at its ends."""

MIN_OPS = 4
"""The fewest ops of a trimmed classical range; the published minimum of all ranges."""

PLANNED_OPS = 5_000
"""The size of the windows in which larger graphs are planned, as Inductor's time grows faster than
its graph; no range crosses the end of a window.
"""

LONE_ELEMENT = "an element of a tuple made elsewhere is no subgraph"


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The ops [start, stop) of a graph, as a graph, without `num_trimmed` ops of the range asked
    for.
    """

    kind: SubgraphKind
    start: int
    stop: int
    graph: Graph
    num_trimmed: int = 0


@dataclass(frozen=True, slots=True)
class RangeRefusal:
    """A range that cannot be a graph; both bounds are 0 where the whole graph has no ranges of this
    kind.
    """

    kind: SubgraphKind
    start: int
    stop: int
    reason: str


def subgraphs(
    graph: Graph,
    classical: Sequence[OpRange] = (),
    kinds: Iterable[SubgraphKind] = SUBGRAPH_KINDS,
    where: str = "graph",
    planned_ops: int = PLANNED_OPS,
) -> Iterator[Subgraph | RangeRefusal]:
    """Yield the subgraphs of a graph, kind by kind, in the order of their ranges.

    A single op that makes a tuple comes with the ops right behind it that take the tuple apart.
    `classical` are the ranges from `folding.ranges`; those that cannot be cut lose up to
    `MAX_TRIMMED_OPS` ops at their ends.

    Raises:
        GraphError: an op is unknown, or refuses the shapes it is given.
    """
    single = Graph(single_assignment(graph.program), graph.tensors)
    parent = parent_of(single.program, inferred_specs(single))
    for kind in kinds:
        if kind == "single":
            yield from _singles(parent)
        elif kind == "classical":
            for start, stop in classical:
                trimmed = trimmed_range(parent, start, stop, MAX_TRIMMED_OPS, MIN_OPS)
                yield _subgraph(parent, kind, (start, stop), trimmed)
        elif len(parent.ops) <= planned_ops:
            yield from _fusibles(parent, single, 0, where)
        else:
            for start in range(0, len(parent.ops), planned_ops):
                stop = min(start + planned_ops, len(parent.ops))
                yield from _fusibles_of_window(parent, start, stop, where)


def _fusibles(
    parent: Parent, graph: Graph, offset: int, where: str
) -> Iterator[Subgraph | RangeRefusal]:
    """Yield the fusible subgraphs of a graph whose first op has number `offset` in the parent."""
    try:
        ranges = fusible_ranges(fusion_plan(graph, where).num_kernels())
    except FusionError as cause:
        yield RangeRefusal("fusible", 0, 0, str(cause))
        return
    for start, stop in ranges:
        yield _subgraph(parent, "fusible", (start + offset, stop + offset))


def _fusibles_of_window(
    parent: Parent, start: int, stop: int, where: str
) -> Iterator[Subgraph | RangeRefusal]:
    """Yield the fusible subgraphs of a window, trimmed to where it can be cut."""
    window = trimmed_range(parent, start, stop, MAX_TRIMMED_OPS, 1)
    if window is None:
        yield RangeRefusal("fusible", start, stop, "the window that it is planned in is no graph")
        return
    yield from _fusibles(parent, cut_range(parent, *window), window[0], where)


def _singles(parent: Parent) -> Iterator[Subgraph | RangeRefusal]:
    start = 0
    while start < len(parent.ops):
        stop = start + 1
        if _is_element(parent, start):
            yield RangeRefusal("single", start, stop, LONE_ELEMENT)
        else:
            while stop < len(parent.ops) and _is_element(parent, stop, of=parent.ops[start].output):
                stop += 1
            yield _subgraph(parent, "single", (start, stop))
        start = stop


def _is_element(parent: Parent, index: int, of: str | None = None) -> bool:
    """Return whether an op takes an element of a tuple or a size, of any or of this name."""
    op = parent.ops[index]
    source = op.args[0] if op.target == "operator.getitem" else None
    is_apart = isinstance(source, Ref) and source.name not in parent.specs
    return is_apart and (of is None or source == Ref(of))


def _subgraph(
    parent: Parent, kind: SubgraphKind, ops: OpRange, trimmed: OpRange | None = None
) -> Subgraph | RangeRefusal:
    start, stop = trimmed or ops
    try:
        graph = cut_range(parent, start, stop)
    except CutError as cause:
        return RangeRefusal(kind, start, stop, str(cause))
    return Subgraph(kind, start, stop, graph, ops[1] - ops[0] - (stop - start))
