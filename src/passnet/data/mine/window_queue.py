"""The order of folds, decided many times from one suffix array.

A window with a new symbol stands for a longer one of the array, and scores no more. So every window
of the array bounds all windows that come of it, and a bound that is reached gives the next fold. If
the best bound is not reached, a new suffix array is due.
"""

import heapq
from dataclasses import dataclass

import numpy as np

from passnet.data.mine.repeats import Ints, disjoint, repeated_windows

WindowKey = tuple[int, int, int]
"""Minus its score, minus its length, and its first start: the lowest is folded first."""


@dataclass(frozen=True, slots=True)
class FoldedWindow:
    """Starts of disjoint occurrences, their width in corpus tokens, and the window's symbols."""

    starts: Ints
    width: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A lower bound on the keys of windows from a known one; `is_whole`: all `starts` are alike."""

    key: WindowKey
    starts: Ints
    is_whole: bool


class WindowQueue:
    """The windows of a corpus, best first, and the corpus as they are folded. `tokens` include
    separators; `longest` has the most tokens of a window from every index, `max_length` is its most
    symbols.
    """

    def __init__(self, tokens: Ints, longest: Ints | None, max_length: int | None) -> None:
        self._symbols = tokens.copy()
        self._begins = np.ones(len(tokens) + 1, bool)  # whether a symbol begins at a token
        self._next = np.arange(1, len(tokens) + 1)
        self._max_length = len(tokens) if max_length is None else max_length
        self._windows = windows = repeated_windows(tokens, longest)
        length = np.minimum(windows.length, windows.last - windows.first)
        length = np.minimum(length, self._max_length)
        scores = (length - 1) * (windows.high - windows.low - 1)
        self._keys = (-scores, -length, windows.first)
        ranked = np.lexsort(self._keys[::-1])[: np.count_nonzero(scores > 0)]
        self._ranked = map(int, ranked)
        self._bounds: list[tuple[WindowKey, int]] = []
        self._latest: int | None = None
        self._push_ranked()
        self._num_begun: Ints | None = None
        self._num_read = 0

    def tokens(self) -> Ints:
        """Return the current corpus."""
        return self._symbols[self._begins[:-1]]

    def best(self) -> FoldedWindow | None:
        """Return the best window; None where the suffix array cannot tell, or none remains."""
        while self._bounds:
            key, number = heapq.heappop(self._bounds)
            if number == self._latest:
                self._push_ranked()
            bound = self._bound(number)
            if bound is not None:
                heapq.heappush(self._bounds, (bound.key, number))
                if bound.key == key:
                    return self._window(bound)
        return None

    def fold(self, window: FoldedWindow, symbol: int) -> None:
        """Put a symbol in place of every occurrence."""
        starts = window.starts
        self._begins[starts[:, None] + np.arange(1, window.width)] = False
        self._symbols[starts] = symbol
        self._next[starts] = starts + window.width
        self._num_begun, self._num_read = None, 0

    def _push_ranked(self) -> None:
        """Queue the next window by the scores before any fold; its key is its first bound."""
        self._latest = next(self._ranked, None)
        if self._latest is not None:
            score, length, first = (int(part[self._latest]) for part in self._keys)
            heapq.heappush(self._bounds, ((score, length, first), self._latest))

    def _bound(self, number: int) -> _Bound | None:
        """Return the bound on a window; None where it repeats no more."""
        windows = self._windows
        starts = windows.order[windows.low[number] : windows.high[number]]
        starts = starts[self._begins[starts]]
        if len(starts) < 2:
            return None
        width = int(windows.length[number])
        sizes = self._sizes(starts, width)
        ranked = np.argsort(-sizes, kind="stable")
        starts, sizes = starts[ranked], sizes[ranked]
        first, last = np.minimum.accumulate(starts), np.maximum.accumulate(starts)
        length = np.minimum(np.minimum(sizes, last - first), self._max_length)
        score = (length - 1) * np.arange(len(starts))
        best = int(np.lexsort((first, -length, -score))[0])
        if score[best] <= 0:
            return None
        key = (-int(score[best]), -int(length[best]), int(first[best]))
        return _Bound(key, np.sort(starts[: best + 1]), bool(sizes[best] == width))

    def _sizes(self, starts: Ints, width: int) -> Ints:
        """Count the symbols that lie wholly in the `width` tokens from each start."""
        self._num_read += len(starts) * width
        if self._num_read < len(self._begins):
            sizes = self._begins[starts[:, None] + np.arange(width)].sum(axis=1)
        else:
            if self._num_begun is None:
                self._num_begun = np.concatenate(([0], np.cumsum(self._begins)))
            sizes = self._num_begun[starts + width] - self._num_begun[starts]
        return sizes - ~self._begins[starts + width]

    def _window(self, bound: _Bound) -> FoldedWindow | None:
        """Return the window at a bound; None where its occurrences are not all alike."""
        first, parts = int(bound.starts[0]), []
        stop = first
        for _ in range(-bound.key[1]):
            parts.append(int(self._symbols[stop]))
            stop = int(self._next[stop])
        width = stop - first
        if width > bound.starts[-1] - first:
            return None
        indices = bound.starts
        for part in () if bound.is_whole else parts:
            if (self._symbols[indices] != part).any():
                return None
            indices = self._next[indices]
        return FoldedWindow(np.array(disjoint(bound.starts, width)), width, tuple(parts))
