"""Which words may come next in an index of the loops form, so that it stays inside of its axis.

An index is whole-number arithmetic, calls before their arguments. Each of its parts has a smallest
and a largest value, known from the bounds of loop variables; a word may come if the index can still
end inside of the axis. In calls deep in each other that is not asked, and an index that then has no
word to stay inside may leave the axis.
"""

from collections.abc import Callable, Generator, Mapping

from passnet.train.loops.language import INDEX_CALLS

MAX_INDEX_DEPTH = 6
MAX_CHECKED_DEPTH = 2
"""How deep in calls it is asked whether an index can still fit; the question takes as many steps as
there are words, to the power of the depth."""

IndexBounds = tuple[int, int]
"""The smallest and the largest value of an index, not always exactly."""
IndexWords = Generator[frozenset[str], str, IndexBounds]
Fits = Callable[[IndexBounds], bool]


class IndexGrammar:
    """The words of indices at one place of an answer.

    Args:
        variables: the loop variables that are known there, with their bounds.
        wholes: whole numbers that may be said, by their words.
        sizes: those of them that are above zero, by which an index may be divided.
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

    def words(self, size: int | None) -> IndexWords:
        """An index of an axis of some size; of any value where the size is None."""
        if size is None:
            return self._index(None, 0)
        return self._index(lambda bounds: bounds[0] >= 0 and bounds[1] < size, 0, size == 1)

    def _index(self, fits: Fits | None, depth: int, is_single: bool = False) -> IndexWords:
        words = [word for word, bounds in self._words.items() if fits is None or fits(bounds)]
        if depth < MAX_INDEX_DEPTH and not is_single:
            words += [call for call in INDEX_CALLS if self._may_call(call, fits, depth)]
        word = yield frozenset(words or self._words)
        if word not in INDEX_CALLS:
            return self._words[word]
        left = yield from self._index(self._left_fits(word, fits, depth), depth + 1)
        if word in ("//", "%"):
            divisor = yield from self.divisor(_of_right(word, left, fits))
            return _called(word, left, (divisor, divisor))
        right = yield from self._index(_of_right(word, left, fits), depth + 1)
        return _called(word, left, right)

    def divisor(
        self, fits: Fits | None = None, depth: int = 0
    ) -> Generator[frozenset[str], str, int]:
        """A number above zero, or a product of such."""
        words = [word for word, size in self._sizes.items() if fits is None or fits((size, size))]
        is_deep = depth >= MAX_INDEX_DEPTH
        word = yield frozenset((*(words or self._sizes), *(("*",) * (not is_deep))))
        if word in self._sizes:
            return self._sizes[word]
        left = yield from self.divisor(None, depth + 1)
        right = yield from self.divisor(_of_right("*", (left, left), fits), depth + 1)
        return left * right

    def _may_call(self, call: str, fits: Fits | None, depth: int) -> bool:
        """Whether an index that begins with a call can still fit."""
        left_fits = self._left_fits(call, fits, depth)
        return left_fits is None or any(left_fits(left) for left in self._leaves)

    def _left_fits(self, call: str, fits: Fits | None, depth: int) -> Fits | None:
        """Whether some right part makes a call of a left part fit; None where anything may."""
        if fits is None or depth >= MAX_CHECKED_DEPTH:
            return None
        rights = self._divisors if call in ("//", "%") else self._leaves
        known: dict[IndexBounds, bool] = {}

        def left_fits(left: IndexBounds, fits: Fits = fits) -> bool:
            if left not in known:
                known[left] = any(fits(_called(call, left, right)) for right in rights)
            return known[left]

        return left_fits


def _of_right(call: str, left: IndexBounds, fits: Fits | None) -> Fits | None:
    return None if fits is None else lambda right: fits(_called(call, left, right))


def _called(call: str, left: IndexBounds, right: IndexBounds) -> IndexBounds:
    """The bounds of a call, from those of its parts."""
    if call == "+":
        return (left[0] + right[0], left[1] + right[1])
    if call == "*":
        ends = [a * b for a in left for b in right]
        return (min(ends), max(ends))
    divisor = right[0]
    if call == "//":
        return (left[0] // divisor, left[1] // divisor)
    return left if left[0] >= 0 and left[1] < divisor else (0, divisor - 1)
