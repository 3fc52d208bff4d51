"""The variants of captured graphs: the same ops at other sizes and in other dtypes.

A net is captured again at each size, and once in each dtype for the literals that follow it; what
is made is checked, and what cannot be is a record that says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch

from passnet.dataset.variant_sizes import Sizes, name_of, published_sizes
from passnet.errors import CaptureError, GraphError
from passnet.extract.recapture import Recaptured, recapture
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph, main_float
from passnet.mine.cost import cost, finite_outputs
from passnet.mine.dtypes import DTYPES, FLOAT32_NORMS, in_dtype
from passnet.mine.literals import adopt_literals

MAX_BYTES = 16 * 2**30
"""Most memory that the arguments of a variant and its largest value may take together."""

MAX_REASON_CHARACTERS = 300

_REFUSALS = (CaptureError, GraphError)
"""What is raised over a net that cannot be captured, and over a graph that cannot be stored."""

OTHER_SIZES = "other sizes"
"""Name of the failure of a net that gives no graph to compare those of other sizes with."""

VariantFailure: TypeAlias = Literal[
    "refused_by_net", "other_graph", "no_float", "refused_by_op", "not_finite", "too_large"
]
"""Why there is no variant.

refused_by_net: the net cannot be built, called or traced at these sizes. other_graph: it gives
other ops, or another data flow, there. no_float: no argument has a floating-point dtype.
refused_by_op: an op takes no such shapes or dtypes. not_finite: an output is infinite or NaN where
that of the original dtype is not. too_large: it takes more than `MAX_BYTES`.
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a graph.

    `name` says what differs from the original: "batch=4,sequence=16,float16", nothing for the
    original itself. `was_run`: it ran on the CPU; else it was checked by shapes and dtypes alone.
    `follows`: the literals of its dtype are those that the net has in it; None where the dtype is
    that of the original.
    """

    number: int
    name: str
    graph: Graph
    was_run: bool
    follows: bool | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A variant that there is not, and why."""

    number: int
    name: str
    cause: VariantFailure
    reason: str


@dataclass(frozen=True, slots=True)
class Captures:
    """One graph of a net as it was captured in its own dtype, and in others by their names."""

    base: Graph
    others: Mapping[str, Graph]


def dtype_variants(
    graph: Graph,
    captures: Captures | None = None,
    dtypes: Sequence[str] = DTYPES,
    kept: frozenset[str] = FLOAT32_NORMS,
    sizes: Sizes | None = None,
    number: int = 0,
) -> Iterator[Variant | Failure]:
    """A graph as it is, then in the dtypes that it is not in; each checked.

    Args:
        graph: at any sizes.
        captures: of its net, for the literals that follow the dtype.
        dtypes: those wanted.
        kept: norms whose parameters stay float32; see `in_dtype`.
        sizes: how the graph differs from the original.
        number: of the graph among those of its net.
    """
    sizes = sizes or {}
    main = main_float(graph.tensors)
    finite: list[torch.Tensor] | None = None
    try:
        checked, finite = _checked(Variant(number, name_of(sizes), graph, False))
        yield checked
    except GraphError as error:
        yield _failure(number, name_of(sizes), "refused_by_op", error)
    for dtype in dtypes:
        if dtype == (main or "float32"):
            continue
        name = name_of(sizes, dtype)
        if main is None:
            yield Failure(number, name, "no_float", "no argument has a floating-point dtype")
            continue
        follows = captures is not None and dtype in captures.others
        try:
            said = graph
            if captures is not None and dtype in captures.others:
                said = adopt_literals(graph, captures.base, captures.others[dtype])
            made = in_dtype(said, dtype, kept)
            variant = Variant(number, name, made, False, follows)
            yield _checked(variant, finite is not None, finite)[0]
        except GraphError as error:
            yield _failure(number, name, "refused_by_op", error)


def _checked(
    variant: Variant, can_run: bool = True, expected: list[torch.Tensor] | None = None
) -> tuple[Variant | Failure, list[torch.Tensor] | None]:
    """The variant, and where its outputs are finite if it was run.

    Args:
        variant: unchecked.
        can_run: run it where it is small.
        expected: where the outputs of the original are finite, which it is to be as well.

    Raises:
        GraphError: an op refuses its shapes or dtypes, or fails when it runs.
    """
    size = cost(variant.graph)
    if size.num_bytes > MAX_BYTES:
        text = f"{size.num_bytes} bytes, above {MAX_BYTES}"
        return Failure(variant.number, variant.name, "too_large", text), None
    if not can_run or not size.is_small:
        return variant, None
    found = finite_outputs(variant.graph)
    if expected is not None and not all(
        mine.shape == theirs.shape and bool((mine | ~theirs).all())
        for mine, theirs in zip(found, expected, strict=True)
    ):
        text = "an output is not finite where that of the original is"
        return Failure(variant.number, variant.name, "not_finite", text), None
    return replace(variant, was_run=True), found


def net_variants(
    entry: str,
    graphs: Mapping[int, Graph],
    train: bool = False,
    dtypes: Sequence[str] = DTYPES,
    shapes: bool = True,
    kept: frozenset[str] = FLOAT32_NORMS,
) -> Iterator[Variant | Failure]:
    """All variants of the graphs of a net: up to ten shapes, in three dtypes each.

    Args:
        entry: of the catalog.
        graphs: captured from it, each under its number among the net's graphs.
        train: they are those of the forward pass of training.
        dtypes: those wanted.
        shapes: whether other sizes are wanted, too.
        kept: norms whose parameters stay float32; see `in_dtype`.
    """
    try:
        base = recapture(entry, {}, train=train)
    except _REFUSALS as error:
        for number, graph in graphs.items():
            yield from dtype_variants(graph, None, dtypes, kept, {}, number)
            if shapes:
                yield _failure(number, OTHER_SIZES, "refused_by_net", error)
        return
    others = {dtype: _in_dtype(entry, dtype, train, graphs) for dtype in dtypes}
    for number, graph in graphs.items():
        captures = _captures(base, others, number, graph)
        yield from dtype_variants(graph, captures, dtypes, kept, {}, number)
    for sizes in published_sizes(base.axes) if shapes else ():
        try:
            made = recapture(entry, sizes, train=train)
        except _REFUSALS as error:
            yield from (
                _failure(number, name_of(sizes), "refused_by_net", error) for number in graphs
            )
            continue
        for number, graph in graphs.items():
            if not _is_alike(made, number, graph):
                text = "other ops or another data flow than the original"
                yield Failure(number, name_of(sizes), "other_graph", text)
                continue
            captures = _captures(base, others, number, graph)
            yield from dtype_variants(made.graphs[number], captures, dtypes, kept, sizes, number)


def _captures(
    base: Recaptured, others: Mapping[str, Mapping[int, Graph]], number: int, graph: Graph
) -> Captures | None:
    if not _is_alike(base, number, graph):
        return None
    known = {dtype: found[number] for dtype, found in others.items() if number in found}
    return Captures(base.graphs[number], known)


def _in_dtype(entry: str, dtype: str, train: bool, graphs: Mapping[int, Graph]) -> dict[int, Graph]:
    """Those graphs of a net, captured in a dtype, that have the ops of the originals."""
    if all(main_float(graph.tensors) in (dtype, None) for graph in graphs.values()):
        return {}
    try:
        made = recapture(entry, {}, dtype, train)
    except _REFUSALS:
        return {}  # the net does not run in this dtype; its graphs may, with the literals they have
    alike = {number for number, graph in graphs.items() if _is_alike(made, number, graph)}
    return {number: made.graphs[number] for number in alike}


def _is_alike(made: Recaptured, number: int, graph: Graph) -> bool:
    """Whether a graph of a net has the ops and the data flow of another."""
    if number >= len(made.graphs):
        return False
    return fingerprints(made.graphs[number]).structure == fingerprints(graph).structure


def _failure(number: int, name: str, cause: VariantFailure, error: Exception) -> Failure:
    return Failure(number, name, cause, str(error)[:MAX_REASON_CHARACTERS])
