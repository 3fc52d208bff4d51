"""Variants of captured graphs: the same ops at other sizes and in other dtypes, each checked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import torch

from passnet.data.capture.recapture import Recaptured, recapture
from passnet.data.dataset.variant_sizes import Sizes, name_of, published_sizes
from passnet.data.mine.dtypes import DTYPES, FLOAT32_NORMS, in_dtype
from passnet.data.mine.literals import adopt_literals
from passnet.errors import CaptureError, GraphError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph, main_float
from passnet.graph.values.cost import cost, finite_outputs, missing_kernels

MAX_BYTES = 16 * 2**30
"""Most memory of a variant's arguments and largest value together."""

MAX_REASON_CHARACTERS = 300

_REFUSALS = (CaptureError, GraphError)

OTHER_SIZES = "other sizes"
"""The failure's name where a net gives no graph to compare others with."""

VariantFailure: TypeAlias = Literal[
    "refused_by_net", "other_graph", "no_float", "refused_by_op", "not_finite", "too_large"
]
"""The cause why there is no variant; see `SizeFailure`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A variant of a graph. `name` is the difference from the original:
    "batch=4,sequence=16,float16", empty for the original. `was_run`: it ran on the CPU; else only
    its shapes and dtypes were checked. `follows`: its literals are those of the net in its dtype;
    None in the original dtype.
    """

    number: int
    name: str
    graph: Graph
    was_run: bool
    follows: bool | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a variant could not be made."""

    number: int
    name: str
    cause: VariantFailure
    reason: str


@dataclass(frozen=True, slots=True)
class Captures:
    """One graph of a net as captured in its own dtype and in others."""

    base: Graph
    by_dtype: Mapping[str, Graph]


def dtype_variants(
    graph: Graph,
    captures: Captures | None = None,
    dtypes: Sequence[str] = DTYPES,
    float32_norms: frozenset[str] = FLOAT32_NORMS,
    sizes: Sizes | None = None,
    number: int = 0,
) -> Iterator[Variant | Failure]:
    """Yield a graph as it is, then in its other dtypes, each checked. `captures` of its net give
    the literals that follow the dtype; `float32_norms` are for `in_dtype`. `sizes` are the
    difference of the graph from the original, `number` is its number in its net.
    """
    sizes = sizes or {}
    captures = captures or Captures(graph, {})
    main = main_float(graph.tensors)
    is_finite: list[torch.Tensor] | None = None
    try:
        original, is_finite = _checked(Variant(number, name_of(sizes), graph, False))
        yield original
    except GraphError as error:
        yield _failure(number, name_of(sizes), "refused_by_op", error)
    for dtype in dtypes:
        if dtype == (main or "float32"):
            continue
        name = name_of(sizes, dtype)
        if main is None:
            yield Failure(number, name, "no_float", "no argument has a floating-point dtype")
            continue
        capture = captures.by_dtype.get(dtype)
        try:
            source = graph if capture is None else adopt_literals(graph, captures.base, capture)
            cast = in_dtype(source, dtype, float32_norms)
            variant = Variant(number, name, cast, False, capture is not None)
            yield _checked(variant, is_finite is not None, is_finite)[0]
        except GraphError as error:
            yield _failure(number, name, "refused_by_op", error)


def _checked(
    variant: Variant, can_run: bool = True, expected: list[torch.Tensor] | None = None
) -> tuple[Variant | Failure, list[torch.Tensor] | None]:
    """Return the checked variant, and the finite elements of its outputs if it was run."""
    size = cost(variant.graph)
    if size.num_bytes > MAX_BYTES:
        text = f"{size.num_bytes} bytes, above {MAX_BYTES}"
        return Failure(variant.number, variant.name, "too_large", text), None
    if not can_run or not size.is_small:
        if lacking := missing_kernels(variant.graph):
            reason = f"running on the CPU: {next(iter(lacking.values()))}"
            return Failure(variant.number, variant.name, "refused_by_op", reason), None
        return variant, None
    actual = finite_outputs(variant.graph)
    if expected is not None and not all(
        output.shape == original.shape and bool((output | ~original).all())
        for output, original in zip(actual, expected, strict=True)
    ):
        text = "an output is not finite where that of the original is"
        return Failure(variant.number, variant.name, "not_finite", text), None
    return replace(variant, was_run=True), actual


def net_variants(
    entry: str,
    graphs: Mapping[int, Graph],
    train: bool = False,
    dtypes: Sequence[str] = DTYPES,
    shapes: bool = True,
    float32_norms: frozenset[str] = FLOAT32_NORMS,
) -> Iterator[Variant | Failure]:
    """Yield all variants of a net's numbered graphs: up to ten shapes, in three dtypes each."""
    try:
        base = recapture(entry, {}, train=train)
    except _REFUSALS as error:
        for number, graph in graphs.items():
            yield from dtype_variants(graph, None, dtypes, float32_norms, {}, number)
            if shapes:
                yield _failure(number, OTHER_SIZES, "refused_by_net", error)
        return
    by_dtype = {dtype: _recaptured_graphs(entry, dtype, train, graphs) for dtype in dtypes}
    captures = {
        number: Captures(
            base.graphs[number],
            {dtype: cast[number] for dtype, cast in by_dtype.items() if number in cast},
        )
        for number, graph in graphs.items()
        if _is_alike(base, number, graph)
    }
    for number, graph in graphs.items():
        yield from dtype_variants(graph, captures.get(number), dtypes, float32_norms, {}, number)
    for sizes in published_sizes(base.axes) if shapes else ():
        name = name_of(sizes)
        try:
            sized = recapture(entry, sizes, train=train)
        except _REFUSALS as error:
            yield from (_failure(number, name, "refused_by_net", error) for number in graphs)
            continue
        for number, graph in graphs.items():
            if not _is_alike(sized, number, graph):
                text = "other ops or another data flow than the original"
                yield Failure(number, name, "other_graph", text)
                continue
            yield from dtype_variants(
                sized.graphs[number], captures.get(number), dtypes, float32_norms, sizes, number
            )


def _recaptured_graphs(
    entry: str, dtype: str, train: bool, graphs: Mapping[int, Graph]
) -> dict[int, Graph]:
    """Return a net's graphs captured in a dtype that have the ops of the originals."""
    if all(main_float(graph.tensors) in (dtype, None) for graph in graphs.values()):
        return {}
    try:
        cast = recapture(entry, {}, dtype, train)
    except _REFUSALS:
        return {}  # the net does not run in this dtype; its graphs may, with the literals they have
    alike = {number for number, graph in graphs.items() if _is_alike(cast, number, graph)}
    return {number: cast.graphs[number] for number in alike}


def _is_alike(recaptured: Recaptured, number: int, graph: Graph) -> bool:
    if number >= len(recaptured.graphs):
        return False
    return fingerprints(recaptured.graphs[number]).structure == fingerprints(graph).structure


def _failure(number: int, name: str, cause: VariantFailure, error: Exception) -> Failure:
    return Failure(number, name, cause, str(error)[:MAX_REASON_CHARACTERS])
