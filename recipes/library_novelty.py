"""The ops, and sequences of four ops, that each library of the catalog adds alone.

Run it with `python recipes/library_novelty.py captures [captures/training]`; it prints the table of
captures/README.md. A sequence counts for a library if no graph of another one has it; the order of
libraries has no influence.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator
from pathlib import Path

from passnet.data.capture.record import library_of
from passnet.data.capture.store import GRAPHS, GraphRow, read_set

LENGTH = 4


def main(folders: Iterable[Path]) -> None:
    """Print the table of some sets of captured graphs."""
    rows = [row for folder in folders for file in read_set(folder)[1] for row in GRAPHS.read(file)]
    nets: dict[str, set[str]] = defaultdict(set)
    graphs: dict[str, int] = defaultdict(int)
    ops: dict[Hashable, set[str]] = defaultdict(set)
    sequences: dict[Hashable, set[str]] = defaultdict(set)
    for row in rows:
        libraries = {library_of(source.entry) for source in row.sources}
        for source in row.sources:
            nets[library_of(source.entry)].add(source.entry)
        for name in libraries:
            graphs[name] += 1
        for op in set(row.op_sequence):
            ops[op] |= libraries
        for sequence in set(_sequences(row)):
            sequences[sequence] |= libraries
    own_ops, own_sequences = _own(ops), _own(sequences)
    print("| library | nets | graphs | own ops | own sequences | a net |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in sorted(nets, key=lambda name: -own_sequences[name] / len(nets[name])):
        print(
            f"| {name} | {len(nets[name])} | {graphs[name]} | {own_ops[name]} | "
            f"{own_sequences[name]} | {own_sequences[name] / len(nets[name]):.1f} |"
        )


def _sequences(row: GraphRow) -> Iterator[tuple[str, ...]]:
    ops = row.op_sequence
    return (ops[start : start + LENGTH] for start in range(len(ops) - LENGTH + 1))


def _own(owners: dict[Hashable, set[str]]) -> dict[str, int]:
    """Count the members that each library has alone."""
    counts: dict[str, int] = defaultdict(int)
    for libraries in owners.values():
        if len(libraries) == 1:
            counts[next(iter(libraries))] += 1
    return counts


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
