"""Rows at other sizes in other dtypes as well: each made of its own row, without its net."""

from collections.abc import Iterable, Iterator, Sequence

from passnet.data.dataset.store import Provenance, SubgraphRow, graph_of, row_of_graph
from passnet.data.dataset.variant_sizes import names_dtype
from passnet.data.mine.dtypes import DTYPES, in_dtype
from passnet.errors import GraphError
from passnet.graph.spec import main_float


def crossed_rows(
    rows: Iterable[SubgraphRow], dtypes: Sequence[str] = DTYPES
) -> Iterator[SubgraphRow]:
    """Of each row at another size, the same in each other dtype in which it can be.

    Which arguments of a subgraph change follows from its own ops, so that a weight whose norm lies
    outside takes the dtype of what it meets. Rows without a floating-point argument give none.
    """
    for row in rows:
        if not row.variant or names_dtype(row.variant):
            continue
        graph = graph_of(row)
        main = main_float(graph.tensors)
        for dtype in dtypes if main is not None else ():
            if dtype == main:
                continue
            try:
                crossed = in_dtype(graph, dtype, where=row.full[:16])
            except GraphError:  # an op refuses the dtype
                continue
            provenance = Provenance(
                row.kinds, f"{row.variant},{dtype}", row.original, row.domain, row.nets,
                row.num_graphs, row.num_places, row.places,
            )  # fmt: skip
            yield row_of_graph(crossed, provenance, row.full[:16])
