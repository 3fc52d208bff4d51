"""A part of a set of captured graphs that stands for the whole."""

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from passnet.extract.store import GraphRow, text_bytes


def stratified_sample(rows: Iterable[GraphRow], max_text_bytes: int) -> list[GraphRow]:
    """As many graphs as have at most so many bytes of text, taken evenly over strata.

    A stratum is the graphs of one library and one task whose numbers of ops lie within the same
    power of four. Strata give one graph after the other, in the order of their fingerprints, those
    first that have given the fewest bytes; one structure is taken once. The same rows give the same
    part, in whatever order they come.
    """
    strata: dict[tuple[str, str, int], list[GraphRow]] = {}
    for row in rows:
        library = row.sources[0].entry.split("/")[0]
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
