"""The subgraphs of a captured graph, each once with all its places, and the rows that they are."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from passnet.data.capture.record import Domain
from passnet.data.dataset.store import MAX_PLACES, Occurrence, Provenance, SubgraphRow, row_of_graph
from passnet.graph.canonical import fingerprints
from passnet.graph.spec import Graph


@dataclass(slots=True)
class MinedSubgraph:
    """A subgraph, the kinds of its ranges in the graph, and for a variant the full fingerprint of
    what it was made of.
    """

    graph: Graph
    ranges: dict[tuple[int, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    original: str = ""


Mined: TypeAlias = dict[str, MinedSubgraph]
"""The subgraphs of one graph by full fingerprint."""


def mined_as(graph: Graph, mined: Mined) -> MinedSubgraph:
    """The entry of a subgraph among those of its graph; a new one where there is none."""
    full = fingerprints(graph).full
    assert full is not None, "a cut graph has specs"
    return mined.setdefault(full, MinedSubgraph(graph))


def mined_rows(
    mined: Mined, variant: str, captured: str, domain: Domain, nets: Iterable[str]
) -> list[SubgraphRow]:
    """The rows of the subgraphs of one graph, with all places in it.

    `variant` says what differs from what was captured; `captured` is the full fingerprint of the
    captured graph, and `nets` are those that it is of.
    """
    names = tuple(sorted(nets)[:MAX_PLACES])
    rows = []
    for full, subgraph in sorted(mined.items()):
        places = tuple(Occurrence(captured, *ops) for ops in sorted(subgraph.ranges))
        kinds = {kind for kinds in subgraph.ranges.values() for kind in kinds}
        provenance = Provenance(
            tuple(sorted(kinds)), variant, subgraph.original, domain, names, 1, len(places), places
        )
        rows.append(row_of_graph(subgraph.graph, provenance, full[:16]))
    return rows
