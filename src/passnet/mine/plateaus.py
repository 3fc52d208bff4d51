"""Ranges of ops that a compiler fuses, from the number of kernels that each prefix compiles to.

K(P) is the number of kernels of the first P ops. Where it does not grow, op P was absorbed into a
kernel that was there; a plateau of K is a fusible range.

Source: PassNet paper (arXiv 2605.29357), Execution-driven Prefix Analysis.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from passnet.errors import InputError


def fusible_ranges(num_kernels: Sequence[int]) -> list[tuple[int, int]]:
    """The ranges [start, stop) of ops that are fused, in order, without overlap.

    Args:
        num_kernels: K(1), K(2), ... of the prefixes of a graph, one for each op.

    Raises:
        InputError: a count is negative.

    Examples:
        The published one, of resnet18:

        >>> fusible_ranges([4,4,4,5,11,11,11,16,16,15,15,21,21,21,26,26,25,25])
        [(0, 3), (4, 7), (7, 11), (11, 14), (14, 18)]
    """
    if any(count < 0 for count in num_kernels):
        raise InputError("a number of kernels is negative")
    found = []
    for plateau in _merged(_plateaus(num_kernels), num_kernels):
        counts = [num_kernels[place] for place in plateau]
        changes = [later - earlier for earlier, later in pairwise(counts) if later != earlier]
        grows_last = bool(changes) and changes[-1] > 0
        if len(plateau) > 1 and counts[0] >= counts[-1] and not grows_last:
            found.append((plateau[0], plateau[-1] + 1))
    return list(_disjoint(sorted(found, key=lambda item: (item[0], -item[1]))))


def _plateaus(num_kernels: Sequence[int]) -> list[list[int]]:
    """Places in groups: each belongs to the smallest count that occurs both before and after it."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for place, count in enumerate(num_kernels):
        first.setdefault(count, place)
        last[count] = place
    counts = sorted(first)
    levels = [
        next(count for count in counts if first[count] <= place <= last[count])
        for place in range(len(num_kernels))
    ]
    places = range(len(levels))
    return [list(group) for _, group in groupby(places, key=lambda place: levels[place])]


def _merged(plateaus: Sequence[list[int]], num_kernels: Sequence[int]) -> list[list[int]]:
    """Neighbours made one where the count does not grow from one to the next."""
    merged: list[list[int]] = []
    for plateau in plateaus:
        if merged and num_kernels[merged[-1][-1]] >= num_kernels[plateau[0]]:
            merged[-1] += plateau
        else:
            merged.append(list(plateau))
    return merged


def _disjoint(found: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    end = 0
    for start, stop in found:
        if start >= end:
            yield start, stop
            end = stop
