"""Subgraphs to learn from: random windows of ops of captured graphs, cut by `mine`.

As in benchmarks, a window lies between library calls, or sometimes across one, and short windows
are more frequent. Nothing is lowered, so that a net of a thousand ops takes seconds.
"""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from passnet.data.mine.cut import Parent, cut_range, inferred_specs, parent_of, single_assignment
from passnet.errors import CutError, GraphError
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph
from passnet.graph.values.effects import last_name
from passnet.graph.values.fake import SYMBOL_ANNOTATION
from passnet_loops.data.rare_ops import RareOps

MAX_GRAPH_OPS = 800
MAX_WINDOW_OPS = 14
MAX_ELEMENTS = 2**22
"""Of all arguments of a subgraph; larger ones take the judge longer and teach nothing else."""

_LIBRARY_CALLS = """
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d matmul mm bmm
    addmm baddbmm einsum scaled_dot_product_attention lstm gru bilinear tensordot
"""
LIBRARY_CALLS = frozenset(_LIBRARY_CALLS.split())
SHARE_ACROSS = 0.15
"""Share of windows that may hold a call of a library."""


@dataclass(frozen=True, slots=True)
class Window:
    """A subgraph of a captured graph, maybe with exchanged ops."""

    graph: Graph
    is_exchanged: bool = False


def windows(
    graph: Graph, seed: str, max_windows: int = 40, rare: RareOps | None = None
) -> Iterator[Window]:
    """Yield subgraphs of a graph, each structure once, in a random order.

    With `rare`, these are subgraphs that hold a rare op, some only after an exchange.

    Raises:
        GraphError: Its shapes cannot be inferred, or it is too large.
    """
    single = Graph(single_assignment(graph.program), graph.tensors)
    ops = single.program.ops
    if len(ops) > MAX_GRAPH_OPS:
        raise GraphError(f"a graph of {len(ops)} ops")
    parent = parent_of(single.program, inferred_specs(single))
    draw = random.Random(seed)  # noqa: S311 (no secret)
    structures: set[str] = set()
    spans = list(_spans([last_name(op.target) for op in ops], draw))
    if rare is not None:
        spans += rare.spans([op.target for op in ops], MAX_WINDOW_OPS, draw)
    draw.shuffle(spans)
    for start, stop in spans:
        if len(structures) >= max_windows:
            return
        cut = _cut(parent, start, stop)
        window = rare.exchanged(cut, draw) if cut is not None and rare is not None else cut
        if window is not None:
            structure = fingerprints(window).structure
            if structure not in structures:
                structures.add(structure)
                yield Window(window, window is not cut)


def _spans(names: list[str], draw: random.Random) -> Iterator[tuple[int, int]]:
    """Yield windows of a graph, from the last names of its ops."""
    bounds = [-1, *(n for n, name in enumerate(names) if name in LIBRARY_CALLS), len(names)]
    for before, after in zip(bounds, bounds[1:], strict=False):
        start, stop = before + 1, after
        if stop - start > 1:
            if stop - start <= MAX_WINDOW_OPS:
                yield start, stop
            for _ in range(min(4, stop - start)):
                first = draw.randrange(start, stop - 1)
                length = min(draw.randint(2, MAX_WINDOW_OPS), draw.randint(2, MAX_WINDOW_OPS))
                yield first, min(stop, first + length)
        if draw.random() < SHARE_ACROSS and 0 <= before < len(names):
            yield max(0, before - draw.randint(0, 3)), min(len(names), before + draw.randint(2, 8))


def _cut(parent: Parent, start: int, stop: int) -> Graph | None:
    with suppress(CutError):
        cut = cut_range(parent, start, stop)
        is_fit = cut.tensors and sum(spec.num_elements for spec in cut.tensors) <= MAX_ELEMENTS
        has_symbol = any(param.annotation == SYMBOL_ANNOTATION for param in cut.program.params)
        return cut if is_fit and not has_symbol and stop - start > 1 else None
    return None
