"""The words that may come next in an index of the loops form, so that it stays inside its axis.

An index is whole-number arithmetic in prefix order. The bounds of loop variables give every part a
smallest and a largest value. A word is allowed if one of the intervals that fit contains the bounds
of its part. Deeply nested calls are not checked, so that an index there may leave the axis.
"""

from bisect import bisect_right
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from operator import itemgetter

from passnet_loops.language.language import INDEX_CALLS

MAX_INDEX_DEPTH = 6
MAX_CHECKED_DEPTH = 2
"""Depth of calls down to which indices are checked, in time exponential in the depth."""

ANYWHERE = 10**30
"""Beyond all bounds of an index."""

IndexBounds = tuple[int, int]
"""The smallest and the largest value of an index, not always exactly."""
IndexWords = Generator[frozenset[str], str, IndexBounds]
Fits = tuple[IndexBounds, ...]
"""The intervals that may contain the bounds of an index, in order, none of them inside another."""


class IndexGrammar:
    """The words of indices at one position of an answer.

    `sizes` are the allowed whole numbers above zero, by which an index may be divided.
    """

    def __init__(
        self,
        variables: Mapping[str, IndexBounds],
        wholes: Mapping[str, int],
        sizes: Mapping[str, int],
    ) -> None:
        self._words = {word: (number, number) for word, number in wholes.items()} | dict(variables)
        leaves = self._words.values()  # or their negatives, which are calls with -1
        self._leaves = tuple(dict.fromkeys((*leaves, *((-high, -low) for low, high in leaves))))
        self._sizes = sizes
        self._divisors = tuple(dict.fromkeys((size, size) for size in sizes.values()))
        self._allowed: dict[tuple[Fits | None, int], frozenset[str]] = {}
        self._lefts: dict[tuple[Fits, str], Fits] = {}

    def words(self, size: int | None) -> IndexWords:
        """Yield an index of an axis of a size; of any value where the size is None."""
        return self._index(None if size is None else ((0, size - 1),), 0)

    def _index(self, fits: Fits | None, depth: int) -> IndexWords:
        word = yield self._may_come(fits, depth)
        if word not in INDEX_CALLS:
            return self._words[word]
        left = yield from self._index(self._left_fits(word, fits, depth), depth + 1)
        if word in ("//", "%"):
            divisor = yield from self.divisor(
                lambda size: fits is None or _is_in(fits, _called(word, left, (size, size)))
            )
            return _called(word, left, (divisor, divisor))
        right = yield from self._index(fits and _fitting(word, (left,), fits), depth + 1)
        return _called(word, left, right)

    def divisor(
        self, fits: Callable[[int], bool] | None = None, depth: int = 0
    ) -> Generator[frozenset[str], str, int]:
        """Yield a number above zero, or a product of such."""
        fitting = [word for word, size in self._sizes.items() if fits is None or fits(size)]
        is_deep = depth >= MAX_INDEX_DEPTH
        word = yield frozenset((*(fitting or self._sizes), *(("*",) * (not is_deep))))
        if word in self._sizes:
            return self._sizes[word]
        left = yield from self.divisor(None, depth + 1)
        right = yield from self.divisor(fits and (lambda size: fits(left * size)), depth + 1)
        return left * right

    def _may_come(self, fits: Fits | None, depth: int) -> frozenset[str]:
        """Return the allowed words, cached by the intervals that fit."""
        if (fits, depth) not in self._allowed:
            words = [
                word for word, bounds in self._words.items() if fits is None or _is_in(fits, bounds)
            ]
            is_single = depth == 0 and fits == ((0, 0),)
            if depth < MAX_INDEX_DEPTH and not is_single:
                words += [call for call in INDEX_CALLS if self._may_call(call, fits, depth)]
            self._allowed[fits, depth] = frozenset(words or self._words)
        return self._allowed[fits, depth]

    def _may_call(self, call: str, fits: Fits | None, depth: int) -> bool:
        """Return True if an index that begins with a call can still fit."""
        left_fits = self._left_fits(call, fits, depth)
        return left_fits is None or any(_is_in(left_fits, left) for left in self._leaves)

    def _left_fits(self, call: str, fits: Fits | None, depth: int) -> Fits | None:
        """Return the intervals that fit the left part of a call; None where any value does."""
        if fits is None or depth >= MAX_CHECKED_DEPTH:
            return None
        if (fits, call) not in self._lefts:
            rights = self._divisors if call in ("//", "%") else self._leaves
            self._lefts[fits, call] = _fitting(call, rights, fits)
        return self._lefts[fits, call]


def _is_in(fits: Fits, bounds: IndexBounds) -> bool:
    """Return True if bounds lie in an interval; the last that begins early enough ends last."""
    number = bisect_right(fits, bounds[0], key=itemgetter(0))
    return number > 0 and fits[number - 1][1] >= bounds[1]


def _fitting(call: str, operands: Iterable[IndexBounds], fits: Fits) -> Fits:
    """Return the intervals that fit one part of a call, if the other is one of `operands`."""
    intervals = {
        interval
        for operand in operands
        for whole in fits
        for interval in _parts(call, operand, whole)
    }
    widest: list[IndexBounds] = []
    for low, high in sorted(intervals, key=lambda ends: (ends[0], -ends[1])):
        if low <= high and (not widest or high > widest[-1][1]):
            widest.append((low, high))
    return tuple(widest)


def _parts(call: str, operand: IndexBounds, whole: IndexBounds) -> Iterator[IndexBounds]:
    """Yield the intervals that a part must lie in, for the call to lie in `whole`."""
    low, high = whole
    if call == "+":
        yield low - operand[0], high - operand[1]
    elif call == "*":
        lows, highs = zip(*(_quotients(whole, factor) for factor in set(operand)), strict=True)
        yield max(lows), min(highs)
    elif call == "//":
        yield low * operand[0], high * operand[0] + operand[0] - 1
    elif low <= 0 and high >= operand[0] - 1:
        yield -ANYWHERE, ANYWHERE
    else:
        yield max(low, 0), min(high, operand[0] - 1)


def _quotients(whole: IndexBounds, factor: int) -> IndexBounds:
    """Return the numbers that lie in an interval when multiplied by a factor."""
    if factor == 0:
        return (-ANYWHERE, ANYWHERE) if whole[0] <= 0 <= whole[1] else (1, 0)
    low, high = whole if factor > 0 else whole[::-1]
    return -(-low // factor), high // factor


def _called(call: str, left: IndexBounds, right: IndexBounds) -> IndexBounds:
    """Return the bounds of a call from the bounds of its parts."""
    if call == "+":
        return (left[0] + right[0], left[1] + right[1])
    if call == "*":
        ends = [a * b for a in left for b in right]
        return (min(ends), max(ends))
    divisor = right[0]
    if call == "//":
        return (left[0] // divisor, left[1] // divisor)
    return left if left[0] >= 0 and left[1] < divisor else (0, divisor - 1)
