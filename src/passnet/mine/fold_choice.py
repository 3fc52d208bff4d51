"""Which window to fold next, decided many times from one suffix array.

A fold changes little of a corpus: what a window without folded ops scored, it still scores. And a
window with a new symbol in it stands for a longer one that the suffix array knows, and that scored
no less. So every window of the array has a bound on all that may come of it, and the highest bound
is the next fold where it is reached. Where it is not, a new suffix array is due.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from passnet.mine.repeats import Ints, disjoint, find_repeats, repeated_windows

Key = tuple[int, int, int]
"""Score, length, and minus the place of the first occurrence: the highest is folded first."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Disjoint occurrences of a window: where they begin and how many tokens of the batch each
    takes, and the symbols of the window.
    """

    starts: Ints
    width: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    """No window that came of a known one has a higher `key`; `starts` are where one with this key
    would stand, if they are all alike, which is sure where `is_whole`.
    """

    key: Key
    starts: Ints
    is_whole: bool


class Batch:
    """The state of folding with one suffix array.

    Args:
        tokens: the corpus, with separators.
        longest: the most tokens of a window, for every place where one may begin.
        most: the most symbols of a window; None for any.
    """

    def __init__(self, tokens: Ints, longest: Ints | None, most: int | None) -> None:
        self._symbols = tokens.copy()
        self._kept = np.ones(len(tokens) + 1, bool)
        self._next = np.arange(1, len(tokens) + 1)
        self._most = len(tokens) if most is None else most
        repeats = find_repeats(tokens, None if longest is None else int(longest.max()))
        self._order = repeats.order
        self._windows = repeated_windows(repeats, longest)
        windows = self._windows
        length = np.minimum(windows.length, windows.last - windows.first)
        length = np.minimum(length, self._most)
        scores = (length - 1) * (windows.high - windows.low - 1)
        self._ranked = np.lexsort((windows.first, -length, -scores))[: np.count_nonzero(scores > 0)]
        self._keys = (scores, length, -windows.first)
        self._position = 0
        self._changed: list[tuple[int, int, int, int]] = []
        self._before: Ints | None = None
        self._num_looked_at = 0

    def tokens(self) -> Ints:
        """The corpus as it is now."""
        return self._symbols[self._kept[:-1]]

    def choose(self) -> Choice | None:
        """The best window; None where the suffix array cannot tell, or no window is left."""
        while (window := self._pop()) is not None:
            key, number = window
            bound = self._bound(number)
            if bound is not None:
                self._push(bound.key, number)
                if bound.key == key:
                    return self._choice(bound)
        return None

    def fold(self, choice: Choice, symbol: int) -> None:
        """Put a symbol in place of every occurrence."""
        starts = choice.starts
        behind = starts[:, None] + np.arange(1, choice.width)
        self._kept[behind] = False
        self._symbols[starts] = symbol
        self._next[starts] = starts + choice.width
        self._before, self._num_looked_at = None, 0

    def _pop(self) -> tuple[Key, int] | None:
        """The window with the highest bound known so far."""
        ahead = None
        if self._position < len(self._ranked):
            number = int(self._ranked[self._position])
            ahead = (*(-int(part[number]) for part in self._keys), number)
        if self._changed and (ahead is None or self._changed[0] < ahead):
            ahead = heapq.heappop(self._changed)
        elif ahead is not None:
            self._position += 1
        if ahead is None:
            return None
        return (-ahead[0], -ahead[1], -ahead[2]), ahead[3]

    def _push(self, key: Key, number: int) -> None:
        heapq.heappush(self._changed, (-key[0], -key[1], -key[2], number))

    def _bound(self, number: int) -> _Bound | None:
        """What may still come of a window; None where that repeats no more."""
        windows = self._windows
        starts = self._order[windows.low[number] : windows.high[number]]
        starts = starts[self._kept[starts]]
        if len(starts) < 2:
            return None
        width = int(windows.length[number])
        sizes = self._sizes(starts, width)
        ranked = np.argsort(-sizes, kind="stable")
        starts, sizes = starts[ranked], sizes[ranked]
        first, last = np.minimum.accumulate(starts), np.maximum.accumulate(starts)
        length = np.minimum(np.minimum(sizes, last - first), self._most)
        score = (length - 1) * np.arange(len(starts))
        best = int(np.lexsort((first, -length, -score))[0])
        key = (int(score[best]), int(length[best]), -int(first[best]))
        if key[0] <= 0:
            return None
        return _Bound(key, np.sort(starts[: best + 1]), bool(sizes[best] == width))

    def _sizes(self, starts: Ints, width: int) -> Ints:
        """How many symbols lie wholly in the `width` tokens from each start.

        Sums over the whole corpus are made once the windows looked at since the last fold are as
        long together.
        """
        self._num_looked_at += len(starts) * width
        if self._num_looked_at < len(self._kept):
            found = self._kept[starts[:, None] + np.arange(width)].sum(axis=1)
        else:
            if self._before is None:
                self._before = np.concatenate(([0], np.cumsum(self._kept)))
            found = self._before[starts + width] - self._before[starts]
        return found - ~self._kept[starts + width]

    def _choice(self, bound: _Bound) -> Choice | None:
        """The window that reaches a bound; None where its places are not all alike."""
        starts, length = bound.starts, bound.key[1]
        place, parts = int(starts[0]), []
        for _ in range(length):
            parts.append(int(self._symbols[place]))
            place = int(self._next[place])
        width = place - int(starts[0])
        if width > starts[-1] - starts[0]:
            return None
        if not bound.is_whole:
            places = starts
            for part in parts:
                if (self._symbols[places] != part).any():
                    return None
                places = self._next[places]
        return Choice(np.array(disjoint(starts, width)), width, tuple(parts))
