"""What repeats in the captured graphs: the patterns that cover half of all ops, and the suites' op
sequences as the set grows.

Run it with `python recipes/patterns.py captures 3`, where 3 is the number of shards that an earlier
version had; it prints the tables of captures/README.md and docs/suites.md.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from passnet.data.capture.store import read_set
from passnet.data.mine.folding import COVERING, alphabet, fold, ranges
from passnet.judge.suite.shipped import shipped_suites

SHOWN = 12
SAME = 0.01
"""Change of a rate up to which an op sequence counts as equally common."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Base of the windows' hashes, which are modulo 2^64."""

Ops = tuple[str, ...]


def main(folder: Path, num_earlier: int) -> None:
    """Print both tables of a set of captured graphs."""
    parts = [pq.read_table(file, columns=["op_sequence"]) for file in read_set(folder)[1]]
    graphs = [[tuple(ops) for ops in part["op_sequence"].to_pylist()] for part in parts]
    everything = [ops for part in graphs for ops in part]
    covered, total = pattern_coverage(everything), sum(map(len, everything))
    half = num_for_half(covered, total)
    print(f"{half} of {len(covered)} patterns cover half of {total:,} ops")
    print("\n| pattern | occurrences | ops covered |\n|---|--:|--:|")
    for ops, num_ops in covered.most_common(SHOWN):
        print(f"| {_shown(ops)} | {num_ops // len(ops):,} | {100 * num_ops / total:.1f} % |")
    later = [ops for part in graphs[num_earlier:] for ops in part]
    print_changes([ops for part in graphs[:num_earlier] for ops in part], later)


def print_changes(earlier: Sequence[Ops], later: Sequence[Ops]) -> None:
    """Print for each suite which of its op sequences the later graphs make commoner."""
    suites: dict[str, set[Ops]] = {}
    for name, path in shipped_suites().items():
        if not any(part in name for part in ("-small", "-held-out", "@")):
            column = pq.read_table(path, columns=["op_sequence"])["op_sequence"]
            suites[name] = {tuple(ops) for ops in column.to_pylist()}
    sequences = sorted(set().union(*suites.values()))
    kinds = dict(zip(sequences, changes(sequences, earlier, later), strict=True))
    print("\n| suite | op sequences | commoner | rarer | about the same | in neither |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, own in suites.items():
        counts = Counter(kinds[ops] for ops in own)
        cells = (counts[kind] for kind in ("commoner", "rarer", "same", "neither"))
        shares = " | ".join(f"{100 * cell / len(own):.0f} %" for cell in cells)
        print(f"| `{name}` | {len(own)} | {shares} |")


def pattern_coverage(graphs: Sequence[Ops]) -> Counter[Ops]:
    """Return the ops that each repeated pattern covers; no op counts for two patterns.

    Examples:
        >>> pattern_coverage([("relu", "add", "mul", "abs") * 2, ("neg",)])
        Counter({('relu', 'add', 'mul', 'abs'): 8})
    """
    coded, _ = alphabet(graphs)
    covered: Counter[Ops] = Counter()
    for found in ranges(fold(coded, COVERING), COVERING):
        covered[graphs[found.sequence][found.start : found.stop]] += found.stop - found.start
    return covered


def num_for_half(covered: Counter[Ops], total: int) -> int:
    """Return the fewest patterns that cover half of all ops; all of them if they cover less.

    Examples:
        >>> num_for_half(Counter({("relu",): 3, ("add",): 2, ("mul",): 1}), 10)
        2
    """
    sums = np.cumsum([num_ops for _, num_ops in covered.most_common()])
    return min(int(np.searchsorted(sums, total / 2)) + 1, len(covered))


def changes(sequences: Sequence[Ops], earlier: Sequence[Ops], later: Sequence[Ops]) -> list[str]:
    """Return whether later graphs make each op sequence commoner or rarer among all ops, or leave
    it the same; "neither" where no graph has it.

    Examples:
        >>> changes([("a",), ("b",), ("c",)], [("a", "a", "b")], [("b",)])
        ['rarer', 'commoner', 'neither']
    """
    before, added = (num_found(sequences, graphs) for graphs in (earlier, later))
    num_before, num_added = (sum(map(len, graphs)) for graphs in (earlier, later))
    kinds = []
    for old, new in zip(before, added, strict=True):
        rate, grown = old / num_before, (old + new) / (num_before + num_added)
        is_same = abs(grown - rate) <= SAME * rate
        moved = "same" if is_same else "commoner" if grown > rate else "rarer"
        kinds.append(moved if old + new else "neither")
    return kinds


def num_found(sequences: Sequence[Ops], graphs: Sequence[Ops]) -> list[int]:
    """Return the number of places of each op sequence in some graphs; places may overlap."""
    numbers = {op: k for k, op in enumerate(sorted({op for ops in graphs for op in ops}), 1)}
    joined = [number for ops in graphs for number in (*(numbers[op] for op in ops), 0)]
    tokens = np.array(joined, np.uint64)
    found = [0] * len(sequences)
    by_length: dict[int, list[int]] = {}
    for k, ops in enumerate(sequences):
        if all(op in numbers for op in ops):
            by_length.setdefault(len(ops), []).append(k)
    for length, members in by_length.items():
        coded = [np.array([numbers[op] for op in sequences[k]], np.uint64) for k in members]
        keys, owners = np.unique([_hashes(ops, length)[0] for ops in coded], return_index=True)
        windows = _hashes(tokens, length)
        nearest = np.minimum(np.searchsorted(keys, windows), len(keys) - 1)
        counts = np.bincount(nearest[keys[nearest] == windows], minlength=len(keys))
        for key, owner in enumerate(owners):
            found[members[owner]] = int(counts[key])
    return found


def _hashes(tokens: np.ndarray, length: int) -> np.ndarray:
    """Return a hash of every window of so many tokens."""
    mixed = tokens * tokens + tokens + np.uint64(1)
    hashes = np.zeros(max(len(tokens) - length + 1, 0), np.uint64)
    for k in range(length):
        hashes = hashes * _FACTOR + mixed[k : k + len(hashes)]
    return hashes


def _shown(ops: Ops) -> str:
    names = [op.rpartition(".")[2] for op in ops]
    return ", ".join(names[:8]) + (f", ... ({len(names)} ops)" if len(names) > 8 else "")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
