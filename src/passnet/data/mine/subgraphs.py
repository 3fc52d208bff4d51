"""The subgraphs of a graph: ranges of ops of three kinds, cut out as graphs.

Source: PassNet paper (arXiv 2605.29357), Execution-driven Prefix Analysis (fusible ranges).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Literal, TypeAlias

from passnet.data.mine.cut import (
    Parent,
    cut_range,
    inferred_specs,
    parent_of,
    single_assignment,
    trimmed_range,
)
from passnet.errors import CutError, FusionError, InputError
from passnet.graph.spec import Graph, Ref

SubgraphKind: TypeAlias = Literal["classical", "fusible", "single"]
"""A pattern that repeats in the corpus, a range that a compiler fuses, or one op."""

SUBGRAPH_KINDS: tuple[SubgraphKind, ...] = ("classical", "fusible", "single")

OpRange: TypeAlias = tuple[int, int]

MAX_TRIMMED_OPS = 4
"""The most ops that a classical range may lose at its ends."""

MIN_OPS = 4
"""The fewest ops of a trimmed classical range; the published minimum of all ranges."""

PLANNED_OPS = 5_000
"""Larger graphs are planned in windows: Inductor's time grows faster than its graph."""

LONE_ELEMENT = "an element of a tuple made elsewhere is no subgraph"


@dataclass(frozen=True, slots=True)
class Subgraph:
    """The ops [start, stop) of a graph, as a graph; `num_trimmed` ops of the range are left out."""

    kind: SubgraphKind
    start: int
    stop: int
    graph: Graph
    num_trimmed: int = 0


@dataclass(frozen=True, slots=True)
class RangeRefusal:
    """A range that cannot be a graph; 0 to 0 where the whole graph has none of this kind."""

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
    """Yield the subgraphs of a graph, kind by kind, in the order of their ranges. A single op that
    makes a tuple comes with the ops right behind it that take the tuple apart. `classical` are the
    ranges from `folding.ranges`; those that cannot be cut lose up to `MAX_TRIMMED_OPS` ops at their
    ends.

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
    from passnet.inductor.fusion import fusion_plan  # needs torch; kinds of subgraphs do not

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


def fusible_ranges(num_kernels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges [start, stop) of fused ops, in order, without overlap. `num_kernels` has
    the kernel count of the prefix up to each op. Where it does not grow, the op was absorbed into
    an existing kernel: a plateau is a fusible range.

    Raises:
        InputError: a count is negative.

    Examples:
        The published one, of resnet18:

        >>> fusible_ranges([4,4,4,5,11,11,11,16,16,15,15,21,21,21,26,26,25,25])
        [(0, 3), (4, 7), (7, 11), (11, 14), (14, 18)]
    """
    if any(count < 0 for count in num_kernels):
        raise InputError("a number of kernels is negative")
    fused = []
    for plateau in _merged(_plateaus(num_kernels), num_kernels):
        counts = [num_kernels[index] for index in plateau]
        changes = [later - earlier for earlier, later in pairwise(counts) if later != earlier]
        grows_last = bool(changes) and changes[-1] > 0
        if len(plateau) > 1 and counts[0] >= counts[-1] and not grows_last:
            fused.append((plateau[0], plateau[-1] + 1))
    disjoint: list[tuple[int, int]] = []
    for start, stop in sorted(fused, key=lambda span: (span[0], -span[1])):
        if not disjoint or start >= disjoint[-1][1]:
            disjoint.append((start, stop))
    return disjoint


def _plateaus(num_kernels: Sequence[int]) -> list[list[int]]:
    """Group ops: each belongs to the smallest count that occurs both before and after it."""
    last = {count: index for index, count in enumerate(num_kernels)}
    first = {count: index for index, count in reversed([*enumerate(num_kernels)])}
    levels = [
        min(count for count in first if first[count] <= index <= last[count])
        for index in range(len(num_kernels))
    ]
    groups = groupby(range(len(levels)), key=lambda index: levels[index])
    return [list(group) for _, group in groups]


def _merged(plateaus: Sequence[list[int]], num_kernels: Sequence[int]) -> list[list[int]]:
    """Merge neighbours where the count does not grow from one to the next."""
    merged: list[list[int]] = []
    for plateau in plateaus:
        if merged and num_kernels[merged[-1][-1]] >= num_kernels[plateau[0]]:
            merged[-1] += plateau
        else:
            merged.append(list(plateau))
    return merged
