"""Recursive Folding: repeats in a corpus of op sequences, as nested patterns and ranges.

Source: PassNet paper (arXiv 2605.29357), Recursive Folding. Repeats are exact and of any length
here; the published method hashes windows of up to 64 tokens.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from passnet.data.mine.repeats import Ints
from passnet.data.mine.window_queue import WindowQueue
from passnet.errors import InputError


@dataclass(frozen=True, slots=True)
class FoldingPlan:
    """Settings of folding and of its ranges; the defaults are the published settings.

    Args:
        max_length: the longest pattern in symbols (the published window W); None for any.
        max_patterns: the most patterns to fold; None for any.
        min_ops: the fewest ops of a range.
        max_ops: a range has fewer ops than this.
        bounded: a pattern, too, has fewer ops than `max_ops`; longer ones give no range of their
            own, and hide those across their parts.
    """

    max_length: int | None = 64
    max_patterns: int | None = 16
    min_ops: int = 4
    max_ops: int = 64
    bounded: bool = False


COVERING = FoldingPlan(max_length=None, max_patterns=None, bounded=True)
"""All repeats that can be ranges, until nothing repeats: covers most ops."""


@dataclass(frozen=True, slots=True)
class RepeatedPattern:
    """The expansion of a symbol, its length in ops, and how often it was folded."""

    symbol: int
    parts: tuple[int, ...]
    num_ops: int
    count: int


@dataclass(frozen=True, slots=True)
class Folded:
    """A corpus after folding: sequences of tokens and patterns, numbered from `num_tokens` on."""

    num_tokens: int
    patterns: tuple[RepeatedPattern, ...]
    sequences: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Range:
    """The ops [start, stop) of a sequence of the corpus, an occurrence of a pattern."""

    sequence: int
    start: int
    stop: int
    symbol: int


def alphabet(sequences: Sequence[Sequence[str]]) -> tuple[list[list[int]], list[str]]:
    """Return sequences of names as integers, and the names in order of appearance.

    Examples:
        >>> alphabet([["relu", "add"], ["add"]])
        ([[0, 1], [1]], ['relu', 'add'])
    """
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(name, len(numbers)) for name in names] for names in sequences]
    return coded, list(numbers)


def fold(sequences: Sequence[Sequence[int]], plan: FoldingPlan) -> Folded:
    """Fold a corpus of tokens, integers from 0; no pattern spans two sequences. Each step chooses
    the window that maximises (length - 1) (occurrences - 1), with at least two disjoint
    occurrences; of equals the longest, then the first. Its occurrences, taken greedily from the
    left, become a new symbol.

    Raises:
        InputError: there is no token, or one is negative.

    Examples:
        >>> folded = fold([[3, 4, 5, 1, 3, 4, 5, 6, 2, 3, 4, 5, 6, 7]], FoldingPlan())
        >>> [pattern.parts for pattern in folded.patterns], folded.sequences
        ([(3, 4, 5), (8, 6)], ((8, 1, 9, 2, 9, 7),))
    """
    tokens, num_tokens = _joined(sequences)
    sizes = [1] * num_tokens
    patterns: list[RepeatedPattern] = []
    most = math.inf if plan.max_patterns is None else plan.max_patterns
    is_repeating = True
    while is_repeating and len(patterns) < most:
        queue = WindowQueue(tokens, _longest(tokens, sizes, plan), plan.max_length)
        is_repeating = False
        while len(patterns) < most and (window := queue.best()) is not None:
            symbol = num_tokens + len(patterns)
            queue.fold(window, symbol)
            sizes.append(sum(sizes[part] for part in window.parts))
            count = len(window.starts)
            patterns.append(RepeatedPattern(symbol, window.parts, sizes[symbol], count))
            is_repeating = True
        tokens = queue.tokens()
    return Folded(num_tokens, tuple(patterns), _split(tokens))


def _joined(sequences: Sequence[Sequence[int]]) -> tuple[Ints, int]:
    """Return all tokens, a separator that repeats nowhere after each sequence, and their number."""
    if not any(len(tokens) for tokens in sequences):
        raise InputError("the corpus has no op to fold")
    lowest = min(min(tokens) for tokens in sequences if len(tokens))
    if lowest < 0:
        raise InputError(f"token {lowest} is negative; tokens are integers from 0")
    joined = [part for number, tokens in enumerate(sequences) for part in (*tokens, -1 - number)]
    return np.array(joined, np.int64), max(joined) + 1


def _split(tokens: Ints) -> tuple[tuple[int, ...], ...]:
    ends = np.flatnonzero(tokens < 0)
    return tuple(tuple(part[part >= 0].tolist()) for part in np.split(tokens, ends + 1)[:-1])


def _longest(tokens: Ints, sizes: Sequence[int], plan: FoldingPlan) -> Ints | None:
    """Return the most symbols of a short enough pattern for every start index."""
    if not plan.bounded:
        return None
    ends = np.concatenate(([0], np.cumsum(np.asarray(sizes)[np.maximum(tokens, 0)])))
    fitting = np.searchsorted(ends, ends[:-1] + plan.max_ops, side="left") - 1
    return fitting - np.arange(len(tokens))


def ranges(folded: Folded, plan: FoldingPlan) -> Iterator[Range]:
    """Yield the ranges of a folded corpus; longer patterns are expanded, shorter ones left out."""

    def fitting(symbols: Sequence[int], sequence: int, start: int) -> Iterator[Range]:
        for symbol in symbols:
            if symbol < folded.num_tokens:
                start += 1
                continue
            pattern = folded.patterns[symbol - folded.num_tokens]
            stop = start + pattern.num_ops
            if pattern.num_ops >= plan.max_ops:
                yield from fitting(pattern.parts, sequence, start)
            elif pattern.num_ops >= plan.min_ops:
                yield Range(sequence, start, stop, symbol)
            start = stop

    for sequence, symbols in enumerate(folded.sequences):
        yield from fitting(symbols, sequence, 0)
