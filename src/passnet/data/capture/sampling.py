"""Samples of captured graphs and of their nets."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from heapq import heapify, heappop, heappush

import numpy as np

from passnet.core.records.serialise import decode
from passnet.data.capture.record import library_of
from passnet.data.capture.store import GraphRow, text_bytes
from passnet.graph.spec import TensorSpec

SIZES = (60, 150, 400, 1500)
"""Size classes of nets, by the most ops of their graphs; larger ones take minutes to compile."""

MAX_ELEMENTS = 40_000_000
"""The most elements of all arguments, weights included, of a drawn net."""


def stratified_sample(rows: Iterable[GraphRow], max_text_bytes: int) -> list[GraphRow]:
    """Return a sample of graphs with at most `max_text_bytes` of text, even over strata. A stratum
    is the graphs of one library and one task whose numbers of ops lie within the same power of
    four. The stratum with the fewest bytes gives the next graph, in the order of fingerprints; each
    structure is taken once. The order of the rows has no influence.
    """
    strata: dict[tuple[str, str, int], list[GraphRow]] = {}
    for row in rows:
        library = library_of(row.sources[0].entry)
        magnitude = len(row.op_sequence).bit_length() // 2
        strata.setdefault((library, row.task, magnitude), []).append(row)
    for stratum in strata.values():
        stratum.sort(key=lambda row: row.full, reverse=True)
    queue = [(0, key) for key in sorted(strata)]
    heapify(queue)
    sample: dict[str, GraphRow] = {}
    budget = max_text_bytes
    while queue:
        used, key = heappop(queue)
        row = strata[key].pop()
        size = text_bytes(row)
        if row.structure not in sample and size <= budget:
            sample[row.structure] = row
            budget -= size
            used += size
        if strata[key]:
            heappush(queue, (used, key))
    return sorted(sample.values(), key=lambda row: (row.structure, row.full))


def draw_nets(
    rows: Iterable[GraphRow], available: Collection[str], count: int, seed: int
) -> list[str]:
    """Draw up to `count` nets of captured graphs. Libraries and size classes take turns, and
    domains within them, in an order drawn with `seed`. Nets are entries in `available`, captured in
    evaluation, with at most `SIZES[-1]` ops and `MAX_ELEMENTS` elements.
    """
    ops: dict[str, int] = defaultdict(int)
    elements: dict[str, int] = defaultdict(int)
    domains: dict[str, str] = {}
    for row in rows:
        for source in row.sources:
            if source.entry in available and source.kind == "inference":
                specs = decode(row.tensors, tuple[TensorSpec, ...], row.full)
                ops[source.entry] += len(row.op_sequence)
                elements[source.entry] += sum(math.prod(spec.shape) for spec in specs)
                domains[source.entry] = row.domain
    strata: dict[tuple[int, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    random = np.random.default_rng(seed)
    for entry in random.permutation(sorted(ops)).tolist():
        size = next((number for number, most in enumerate(SIZES) if ops[entry] <= most), None)
        if size is not None and elements[entry] <= MAX_ELEMENTS:
            strata[size, library_of(entry)][domains[entry]].append(entry)
    drawn_nets: list[str] = []
    while len(drawn_nets) < count and any(
        map(any, (by_domain.values() for by_domain in strata.values()))
    ):
        for stratum in sorted(strata):
            by_domain = strata[stratum]
            domain = next((name for name in sorted(by_domain) if by_domain[name]), None)
            if domain is not None and len(drawn_nets) < count:
                drawn_nets.append(by_domain[domain].pop())
                by_domain[domain] = by_domain.pop(domain)  # the next domain has its turn
    return drawn_nets
