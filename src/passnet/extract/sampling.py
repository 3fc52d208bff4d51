"""A part of a set of captured graphs that stands for the whole."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from passnet.extract.store import GraphRow


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
        size = len(row.op_sequence).bit_length() // 2
        strata.setdefault((library, row.task, size), []).append(row)
    for members in strata.values():
        members.sort(key=lambda row: row.full, reverse=True)
    queue = [(0, key) for key in sorted(strata)]
    heapify(queue)
    chosen: list[GraphRow] = []
    seen: set[str] = set()
    left = max_text_bytes
    while queue:
        given, key = heappop(queue)
        members = strata[key]
        row = members.pop()
        size = len(row.program) + len(row.tensors)
        if row.structure not in seen and size <= left:
            seen.add(row.structure)
            chosen.append(row)
            left -= size
            given += size
        if members:
            heappush(queue, (given, key))
    return sorted(chosen, key=lambda row: (row.structure, row.full))
