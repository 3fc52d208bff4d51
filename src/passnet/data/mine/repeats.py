"""Exact repeats of a sequence of integers, of every length, by a suffix array.

Source: Manber and Myers, 1990: ranks of prefixes of length k give those of length 2 k by one sort
of pairs. The ranks of every doubling give the common prefix of any two suffixes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

MAX_TOKENS = (1 << 31) - 1
"""Two ranks of 31 bits fit into 63."""

TOKENS_WITH_INDEX = (1 << 21) - 1
"""The most tokens for which two ranks and an index fit into 63 bits; more take half as long again.
"""


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of tokens that occur more than once, each as long as all its occurrences allow.
    `order` has the starts of the sorted suffixes. Window i occurs at `order[low[i]:high[i]]`,
    overlaps included; `first` and `last` are the outermost of these.
    """

    order: Ints
    low: Ints
    high: Ints
    length: Ints
    first: Ints
    last: Ints


def repeated_windows(
    tokens: Ints, longest: Ints | None = None, tokens_with_index: int = TOKENS_WITH_INDEX
) -> Windows:
    """Return the windows that occur more than once, of two tokens or more. `longest` is the longest
    window to consider from every start, equal for equal tokens. More than `tokens_with_index`
    tokens are sorted without their index.

    Raises:
        ValueError: there are more than `MAX_TOKENS` tokens.
    """
    order, common = _suffixes(
        tokens, None if longest is None else int(longest.max()), tokens_with_index
    )
    if longest is not None:
        common = np.minimum(common, longest[order])
    inner = np.flatnonzero(common >= 2)
    before, after = _smaller(common)
    # Where neighbours have equally much in common, they say the same: the first one speaks.
    inner = inner[(inner == before[inner] + 1) | (common[inner - 1] != common[inner])]
    low, high = before[inner], after[inner]
    first, last = _extremes(order, low, high)
    return Windows(order, low, high, common[inner], first, last)


def _suffixes(tokens: Ints, longest: int | None, tokens_with_index: int) -> tuple[Ints, Ints]:
    """Return the sorted starts of suffixes, and their common prefixes; exact up to `longest`."""
    size = len(tokens)
    if size > MAX_TOKENS:
        raise ValueError(f"{size} tokens are more than {MAX_TOKENS}; fold the corpus in parts")
    bits = size.bit_length()
    _, rank = np.unique(tokens, return_inverse=True)
    rank = rank.astype(np.int64) + 1  # 0 is what stands behind the end
    levels = [rank]
    indices = np.arange(size, dtype=np.int64)
    mask = (1 << bits) - 1
    width = 1
    while True:
        behind = np.zeros(size, np.int64)
        behind[: max(size - width, 0)] = rank[width:]
        pair = (rank << bits) | behind
        if size <= tokens_with_index:
            packed = (pair << bits) | indices
            packed.sort()
            order, pair = packed & mask, packed >> bits
        else:
            order = np.argsort(pair, kind="stable")
            pair = pair[order]
        new = np.empty(size, np.int64)
        new[order] = np.cumsum(np.concatenate(([1], pair[1:] != pair[:-1])))
        if new[order[-1]] == size:
            break
        rank = new
        levels.append(rank)
        width *= 2
        if longest is not None and width >= longest:
            break
    return order, _common(order, levels)


def _common(order: Ints, levels: list[Ints]) -> Ints:
    """Return the lengths of the prefixes that neighbours in the order have in common."""
    size = len(order)
    before, after = order[:-1].copy(), order[1:].copy()
    common = np.zeros(size, np.int64)
    for level in range(len(levels) - 1, -1, -1):
        rank = np.append(levels[level], 0)
        # Behind the end stands a rank of its own for each, so that nothing equals it.
        ranks_before, ranks_after = rank[np.minimum(before, size)], rank[np.minimum(after, size)]
        is_same = (ranks_before == ranks_after) & (ranks_before > 0)
        step = is_same.astype(np.int64) << level
        common[1:] += step
        before += step
        after += step
    return common


def _extremes(order: Ints, low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last start in each range of the order."""
    by_low = np.argsort(low, kind="stable")
    bounds = np.stack([low[by_low], high[by_low]], axis=1).reshape(-1)
    padded = np.append(order, order[-1])  # a bound may lie behind the last
    first, last = np.empty_like(low), np.empty_like(high)
    first[by_low] = np.minimum.reduceat(padded, bounds)[::2]
    last[by_low] = np.maximum.reduceat(padded, bounds)[::2]
    return first, last


def _smaller(values: Ints) -> tuple[Ints, Ints]:
    """Return for every index the nearest smaller value before it and after it; the end is least."""
    size = len(values)
    held = np.append(values, -1)
    before = np.arange(-1, size, dtype=np.int64)  # -1 is the index behind the last, too
    after = np.arange(1, size + 2, dtype=np.int64)
    after[size] = size
    for pointers in (before, after):
        active = np.arange(size)
        while len(active):
            # Between an index and what it points to nothing holds less than the index itself, so
            # that where the target does not hold less, its own target is the next to try.
            active = active[held[pointers[active]] >= held[active]]
            pointers[active] = pointers[pointers[active]]
    return before[:size], after[:size]


def disjoint(starts: Ints, length: int) -> list[int]:
    """Return the sorted starts that do not overlap for a window length, greedily from the left."""
    gaps = np.diff(starts)
    if not len(gaps) or gaps.min() >= length:
        return starts.tolist()
    apart: list[int] = []
    end = -1
    for start in starts.tolist():
        if start >= end:
            apart.append(start)
            end = start + length
    return apart
