"""The ranges of ops of a net that passes may replace, each once with all its places.

Candidates are the ops between two calls of a library; the parts of these at which a compiler's plan
begins a kernel; each large product with a matrix of weights; and the op sequences of passes in the
library. Where an argument has another dimension order in the net than in the judge, the graph of
the range begins with a `permute` to this order.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import torch

from passnet.core.records.dtypes import storage
from passnet.data.capture.capture import CapturedGraph
from passnet.data.mine.cut import (
    Parent,
    cut_range,
    inferred_specs,
    parent_of,
    single_assignment,
    trimmed_range,
)
from passnet.errors import CutError, FusionError, GraphError
from passnet.graph.spec import Graph, Op, Program, Ref, TensorSpec
from passnet.inductor.fusion import FusionPlan, fusion_plan
from passnet.passes.codegen.lowered_ranges import Span, library_ops, spans_between, value_strides
from passnet.passes.codegen.products import is_product, is_slow_product
from passnet.passes.library.store import RangeKey, range_key

MAX_TRIMMED_OPS = 4
"""The most ops that a range may lose at its ends so that it can be cut out."""

MAX_PARTS = 4
"""The most parts of a range whose unions are candidates too."""

OP_MS = 0.003
BYTES_PER_MS = 1e7
"""Guesses of the cost of an op and of the speed of memory, which only order the ranges."""


@dataclass(frozen=True, slots=True)
class Place:
    """The ops [start, stop) of a graph, by its number, in single-assignment form."""

    graph: int
    start: int
    stop: int

    @property
    def span(self) -> Span:
        """The ops."""
        return self.start, self.stop


@dataclass(frozen=True, slots=True)
class NetRange:
    """A range of ops, its places, and a guess of the time of eager torch in all of them."""

    key: RangeKey
    places: tuple[Place, ...]
    guess_ms: float


def net_ranges(
    graphs: Sequence[CapturedGraph],
    sequences: Collection[tuple[str, ...]] = (),
    has_float16: bool | None = None,
) -> tuple[list[NetRange], list[tuple[Place, str]]]:
    """Return the ranges that passes may replace, the slowest first, and the refused places.

    A place is refused, with a reason, where it cannot be cut out, or reads a value with gaps in
    memory. Occurrences of `sequences` of ops, such as a library's, are ranges too. `has_float16`:
    the processor multiplies float16; None asks this one.
    """
    places: dict[str, list[Place]] = {}
    keys: dict[str, RangeKey] = {}
    refused: list[tuple[Place, str]] = []
    for number, captured in enumerate(graphs):
        num_ops = len(captured.graph.program.ops)
        try:
            for span, key in _GraphRanges(number, captured, has_float16).ranges(sequences):
                if isinstance(key, RangeKey):
                    keys.setdefault(key.fingerprint, key)
                    places.setdefault(key.fingerprint, []).append(Place(number, *span))
                else:
                    refused.append((Place(number, *span), key))
        except GraphError as cause:
            refused.append((Place(number, 0, num_ops), str(cause)))
    ranges = [
        NetRange(key, tuple(places[name]), _guess_ms(key.graph) * len(places[name]))
        for name, key in keys.items()
    ]
    return sorted(ranges, key=lambda r: (-r.guess_ms, r.key.fingerprint)), refused


def _guess_ms(graph: Graph) -> float:
    """Return a guess from the number of ops and the bytes that are moved."""
    num_bytes = sum(
        spec.num_elements * storage(spec.dtype).itemsize for spec in inferred_specs(graph).values()
    )
    return len(graph.program.ops) * OP_MS + num_bytes / BYTES_PER_MS


class _GraphRanges:
    """Cuts ranges out of one graph of a net."""

    def __init__(self, number: int, captured: CapturedGraph, has_float16: bool | None) -> None:
        graph = captured.graph
        self._number = number
        self._single = Graph(single_assignment(graph.program), graph.tensors)
        self._parent: Parent = parent_of(self._single.program, inferred_specs(self._single))
        strides = {
            spec.name: tuple(value.stride())
            for spec, value in zip(graph.tensors, captured.values, strict=True)
            if isinstance(value, torch.Tensor) and not value.is_contiguous()
        }
        self._strides = strides | value_strides(self._single, given=strides)
        self._products = [
            (number, number + 1)
            for number, op in enumerate(self._parent.ops)
            if is_product(op, self._parent.specs)
            or is_slow_product(op, self._parent.specs, has_float16)
        ]

    def ranges(
        self, sequences: Collection[tuple[str, ...]]
    ) -> Iterator[tuple[Span, RangeKey | str]]:
        """Return the places of this graph, each once, with the range, or why there is none."""
        spans: set[Span] = set()
        planned = self._planned()
        for span in (*planned, *self._products, *self._occurrences(sequences)):
            if span in planned:
                # what makes a tuple, and what takes it apart, must be on one side of a cut
                span = trimmed_range(self._parent, *span, MAX_TRIMMED_OPS, 1) or span
            if span not in spans:
                spans.add(span)
                try:
                    yield span, self._cut(span)
                except CutError as cause:
                    yield span, str(cause)

    def _cut(self, span: Span) -> RangeKey:
        graph = cut_range(self._parent, *span)
        if not graph.tensors:
            raise CutError(f"range {list(span)} reads nothing")
        strides = {
            spec.name: self._strides[spec.original_name]
            for spec in graph.tensors
            if spec.original_name in self._strides
        }
        return range_key(*laid_out(graph, strides))

    def _planned(self) -> dict[Span, None]:
        """Return the spans between calls of a library, and their parts, that compute something."""
        try:
            plan = fusion_plan(self._single, f"graph {self._number}")
        except FusionError:
            return {(0, len(self._parent.ops)): None}
        computed = {op for kernel in plan.kernels if not kernel.is_extern for op in kernel.ops}
        return {
            part: None
            for span in spans_between(library_ops(plan), plan.num_ops)
            for part in (span, *parts(plan, span))
            if not computed.isdisjoint(range(*part))
        }

    def _occurrences(self, sequences: Collection[tuple[str, ...]]) -> Iterator[Span]:
        """Return the spans of op sequences in the graph."""
        targets = tuple(op.target for op in self._parent.ops)
        for length in sorted({len(sequence) for sequence in sequences}, reverse=True):
            for start in range(len(targets) - length + 1):
                if targets[start : start + length] in sequences:
                    yield start, start + length


def parts(plan: FusionPlan, span: Span) -> list[Span]:
    """Return the parts of a span between the starts of a plan's kernels; none where it is one part.

    Up to `MAX_PARTS` all unions of neighbours are parts too.

    Examples:
        >>> from passnet.inductor.fusion import Kernel
        >>> kernels = [Kernel(frozenset({op}), False, op) for op in (0, 2)]
        >>> parts(FusionPlan(4, tuple(kernels)), (0, 4))
        [(0, 2), (2, 4)]
    """
    start, stop = span
    begun = {kernel.start for kernel in plan.kernels if start < kernel.start < stop}
    bounds = [start, *sorted(begun), stop]
    if len(bounds) - 1 > MAX_PARTS:
        return list(pairwise(bounds))
    return [part for part in combinations(bounds, 2) if part != span]


def laid_out(graph: Graph, strides: Mapping[str, tuple[int, ...]]) -> tuple[Graph, int]:
    """Return a graph with contiguous arguments, and the number of its first ops, which permute.

    CutError for gaps in memory or recorded values.
    """
    params, tensors, layouts = [], [], []
    for param, spec in zip(graph.program.params, graph.tensors, strict=True):
        order = _order(spec, strides.get(spec.name, ()))
        if order != sorted(order):
            if spec.data is not None:
                raise CutError(f"{spec.original_name} has recorded values in another order")
            whole = f"{spec.name}_whole"
            dims = tuple(order.index(dim) for dim in range(len(order)))
            layouts.append(Op(spec.name, "Tensor.permute", (Ref(whole), *dims)))
            param = replace(param, name=whole)
            spec = replace(spec, name=whole, shape=tuple(spec.shape[dim] for dim in order))
        params.append(param)
        tensors.append(spec)
    program = graph.program
    body = (*layouts, *program.body)
    return Graph(Program(tuple(params), body, program.outputs), tuple(tensors)), len(layouts)


def _order(spec: TensorSpec, strides: tuple[int, ...]) -> list[int]:
    """Return the dimensions of an argument from the slowest to the fastest by strides, if any."""
    dims = list(range(len(spec.shape)))
    wide = [dim for dim in dims if spec.shape[dim] > 1]
    ordered = sorted(wide, key=lambda dim: -strides[dim]) if strides else wide
    expected = 1
    for dim in reversed(ordered):
        if strides and strides[dim] != expected:
            raise CutError(
                f"{spec.original_name} of shape {list(spec.shape)} has strides {list(strides)}, "
                "with gaps or repeats"
            )
        expected *= spec.shape[dim]
    return dims if ordered == wide else [*(dim for dim in dims if dim not in wide), *ordered]
