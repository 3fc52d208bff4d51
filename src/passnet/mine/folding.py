"""Recursive Folding: what repeats in a corpus of op sequences, as nested patterns and their ranges.

The pattern that saves most is replaced by a symbol of its own, wherever it occurs, again and again;
patterns may contain the symbols of earlier ones. Every graph becomes a tree of ranges.

Source: PassNet paper (arXiv 2605.29357), Recursive Folding. Repeats are found exactly, of every
length, where the published way hashes windows of up to 64 tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from passnet.errors import InputError
from passnet.mine.fold_choice import Batch
from passnet.mine.repeats import Ints


@dataclass(frozen=True, slots=True)
class FoldingPlan:
    """How to fold, and which ranges to give; the defaults are the published settings.

    Args:
        max_length: the longest pattern in symbols (the published window W); None for any.
        max_patterns: how many patterns to fold at most; None for as many as there are.
        min_ops: the shortest range that is given.
        max_ops: a range has fewer ops than this.
        bounded: whether a pattern has to have fewer ops than `max_ops`, with all that it contains.
            Those that are longer give no range of their own, and hide what lies across their parts.
    """

    max_length: int | None = 64
    max_patterns: int | None = 16
    min_ops: int = 4
    max_ops: int = 64
    bounded: bool = False


UNLIMITED = FoldingPlan(max_length=None, max_patterns=None)
"""All repeats of every length, until nothing repeats."""

COVERING = FoldingPlan(max_length=None, max_patterns=None, bounded=True)
"""All repeats that can be given as ranges, until nothing repeats: what covers most ops."""


@dataclass(frozen=True, slots=True)
class RepeatedPattern:
    """What a symbol stands for: other symbols, below `num_tokens` tokens of the alphabet.

    `num_ops` is its length in ops, `count` how often it was folded.
    """

    symbol: int
    parts: tuple[int, ...]
    num_ops: int
    count: int


@dataclass(frozen=True, slots=True)
class Folded:
    """A corpus after folding: the symbols that are left of each sequence, and the patterns.

    Symbols below `num_tokens` are tokens; the others index `patterns` from there.
    """

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
    """Sequences of names as sequences of integers, and the names of these, in order of appearance.

    Examples:
        >>> alphabet([["relu", "add"], ["add"]])
        ([[0, 1], [1]], ['relu', 'add'])
    """
    numbers: dict[str, int] = {}
    coded = [[numbers.setdefault(name, len(numbers)) for name in item] for item in sequences]
    return coded, list(numbers)


def fold(sequences: Sequence[Sequence[int]], plan: FoldingPlan) -> Folded:
    """Fold a corpus.

    In each step the window is chosen that maximises (length - 1) (occurrences - 1), of those that
    have two disjoint occurrences; see below for equals. Its occurrences,
    taken greedily from the left, become a new symbol.

    Args:
        sequences: of tokens, integers from 0; no pattern spans two sequences.
        plan: when to stop.

    Raises:
        InputError: there is no token, or one is negative.

    Examples:
        >>> folded = fold([[3, 4, 5, 1, 3, 4, 5, 6, 2, 3, 4, 5, 6, 7]], FoldingPlan())
        >>> [item.parts for item in folded.patterns], folded.sequences
        ([(3, 4, 5), (8, 6)], ((8, 1, 9, 2, 9, 7),))
    """
    tokens, num_tokens = _joined(sequences)
    sizes = [1] * num_tokens
    patterns: list[RepeatedPattern] = []
    batch = Batch(tokens, _longest(tokens, sizes, plan), plan.max_length)
    is_new = True
    while plan.max_patterns is None or len(patterns) < plan.max_patterns:
        choice = batch.choose()
        if choice is None and is_new:
            break
        if choice is None:
            tokens = batch.tokens()
            batch = Batch(tokens, _longest(tokens, sizes, plan), plan.max_length)
        else:
            symbol = num_tokens + len(patterns)
            batch.fold(choice, symbol)
            sizes.append(sum(sizes[part] for part in choice.parts))
            patterns.append(
                RepeatedPattern(symbol, choice.parts, sizes[symbol], len(choice.starts))
            )
        is_new = choice is None
    return Folded(num_tokens, tuple(patterns), _split(batch.tokens()))


def _joined(sequences: Sequence[Sequence[int]]) -> tuple[Ints, int]:
    """All tokens in a row, with a separator behind each sequence; how many tokens there can be.

    Separators are negative and all different, so that they repeat nowhere.
    """
    parts = []
    for number, item in enumerate(sequences):
        parts.append(np.append(np.asarray(item, np.int64), -1 - number))
    if not any(len(item) for item in sequences):
        raise InputError("the corpus has no op to fold")
    lowest = min(int(item[:-1].min()) for item in parts if len(item) > 1)
    if lowest < 0:
        raise InputError(f"token {lowest} is negative; tokens are integers from 0")
    joined = np.concatenate(parts)
    return joined, int(joined.max()) + 1


def _split(tokens: Ints) -> tuple[tuple[int, ...], ...]:
    ends = np.flatnonzero(tokens < 0)
    return tuple(tuple(part[part >= 0].tolist()) for part in np.split(tokens, ends + 1)[:-1])


def _longest(tokens: Ints, sizes: Sequence[int], plan: FoldingPlan) -> Ints | None:
    """The most symbols of a pattern with few enough ops, for every place where it may begin."""
    if not plan.bounded:
        return None
    ends = np.concatenate(([0], np.cumsum(np.asarray(sizes)[np.maximum(tokens, 0)])))
    fitting = np.searchsorted(ends, ends[:-1] + plan.max_ops, side="left") - 1
    return fitting - np.arange(len(tokens))


def ranges(folded: Folded, plan: FoldingPlan) -> Iterator[Range]:
    """The ranges of a folded corpus: of every tree of nested symbols those that fit.

    A symbol whose ops are as many as the plan allows gives its range; one that is longer is looked
    into; one that is shorter gives nothing.
    """
    below = {item.symbol: item for item in folded.patterns}
    for number, symbols in enumerate(folded.sequences):
        yield from _ranges(symbols, number, 0, below, plan)


def _ranges(
    symbols: Sequence[int],
    number: int,
    start: int,
    below: dict[int, RepeatedPattern],
    plan: FoldingPlan,
) -> Iterator[Range]:
    for symbol in symbols:
        pattern = below.get(symbol)
        size = pattern.num_ops if pattern else 1
        if pattern is not None and size >= plan.max_ops:
            yield from _ranges(pattern.parts, number, start, below, plan)
        elif pattern is not None and size >= plan.min_ops:
            yield Range(number, start, start + size, symbol)
        start += size


def unfolded(folded: Folded) -> list[list[int]]:
    """The sequences of tokens that a folded corpus came from."""
    below = {item.symbol: item.parts for item in folded.patterns}

    def expand(symbols: Sequence[int]) -> Iterator[int]:
        for symbol in symbols:
            if symbol in below:
                yield from expand(below[symbol])
            else:
                yield symbol

    return [list(expand(symbols)) for symbols in folded.sequences]


def coverage(found: Sequence[Range], sequences: Sequence[Sequence[int]]) -> float:
    """The share of all ops that lie in a range; ranges of one corpus do not overlap."""
    total = sum(len(item) for item in sequences)
    return sum(item.stop - item.start for item in found) / total
