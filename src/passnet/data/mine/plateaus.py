"""Ranges of ops that a compiler fuses, from the kernel counts K of all prefixes: where K does not
grow, an op was absorbed into an existing kernel.

Source: PassNet paper (arXiv 2605.29357), Execution-driven Prefix Analysis.
"""

from collections.abc import Sequence
from itertools import groupby, pairwise

from passnet.errors import InputError


def fusible_ranges(num_kernels: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges [start, stop) of fused ops, in order, without overlap.

    `num_kernels` are K(1), K(2), ... of the prefixes of a graph, one for each op.

    Raises:
        InputError: a count is negative.

    Examples:
        The published one, of resnet18:

        >>> fusible_ranges([4,4,4,5,11,11,11,16,16,15,15,21,21,21,26,26,25,25])
        [(0, 3), (4, 7), (7, 11), (11, 14), (14, 18)]
    """
    if any(count < 0 for count in num_kernels):
        raise InputError("a number of kernels is negative")
    fused = []
    for plateau in _merged(_plateaus(num_kernels), num_kernels):
        counts = [num_kernels[index] for index in plateau]
        changes = [later - earlier for earlier, later in pairwise(counts) if later != earlier]
        grows_last = bool(changes) and changes[-1] > 0
        if len(plateau) > 1 and counts[0] >= counts[-1] and not grows_last:
            fused.append((plateau[0], plateau[-1] + 1))
    disjoint: list[tuple[int, int]] = []
    for start, stop in sorted(fused, key=lambda span: (span[0], -span[1])):
        if not disjoint or start >= disjoint[-1][1]:
            disjoint.append((start, stop))
    return disjoint


def _plateaus(num_kernels: Sequence[int]) -> list[list[int]]:
    """Group ops: each belongs to the smallest count that occurs both before and after it."""
    last = {count: index for index, count in enumerate(num_kernels)}
    first = {count: index for index, count in reversed([*enumerate(num_kernels)])}
    levels = [
        min(count for count in first if first[count] <= index <= last[count])
        for index in range(len(num_kernels))
    ]
    groups = groupby(range(len(levels)), key=lambda index: levels[index])
    return [list(group) for _, group in groups]


def _merged(plateaus: Sequence[list[int]], num_kernels: Sequence[int]) -> list[list[int]]:
    """Merge neighbours where the count does not grow from one to the next."""
    merged: list[list[int]] = []
    for plateau in plateaus:
        if merged and num_kernels[merged[-1][-1]] >= num_kernels[plateau[0]]:
            merged[-1] += plateau
        else:
            merged.append(list(plateau))
    return merged
