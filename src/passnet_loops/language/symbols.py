"""The numbers of a graph as symbols: sizes and whole numbers N0, N1, ..., real numbers F0, F1, ...

A symbol stands for a number wherever it occurs, so that an answer holds for other sizes of the same
structure. Numbers up to 8 and a few usual real numbers stand for themselves.
"""

from dataclasses import dataclass, field
from functools import cached_property

from passnet.errors import InputError
from passnet_loops.language.language import Index, IndexCall

LARGEST_PLAIN = 8
PLAIN_REALS = (0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)


@dataclass
class Symbols:
    """The symbols of a graph, in the order of its prompt."""

    wholes: list[int] = field(default_factory=list)
    reals: list[float] = field(default_factory=list)

    def whole(self, number: int) -> str:
        """Return the word for a whole number of the prompt; add a symbol for a new one."""
        if abs(number) <= LARGEST_PLAIN:
            return str(number)
        if number not in self.wholes:
            self.wholes.append(number)
        return f"N{self.wholes.index(number)}"

    def real(self, number: float) -> str:
        """Return the word for a real number of the prompt; add a symbol for a new one."""
        if number in PLAIN_REALS or number != number or number in (float("inf"), float("-inf")):
            return repr(number)
        if number not in self.reals:
            self.reals.append(number)
        return f"F{self.reals.index(number)}"

    def index_of(self, number: int) -> Index:
        """Return a number as arithmetic of at most three symbols, or raise InputError."""
        if word := self._known_whole(number):
            return word
        if number in self._pairs:
            return self._pairs[number]
        for whole in self.wholes:
            if number % whole == 0 and number // whole in self._pairs:
                return IndexCall("*", self._word(whole), self._pairs[number // whole])
        raise InputError(f"the number {number} is not made of those of the prompt")

    @cached_property
    def _pairs(self) -> dict[int, IndexCall]:
        pairs: dict[int, IndexCall] = {}
        factors = [*self.wholes, *range(2, LARGEST_PLAIN + 1)]
        for name, make in (("*", int.__mul__), ("+", int.__add__)):
            for left in self.wholes:
                for right in (*factors, *((-1,) if name == "+" else ())):
                    parts = IndexCall(name, self._word(left), self._word(right))
                    pairs.setdefault(make(left, right), parts)
        for left in self.wholes:
            for right in self.wholes:
                negative = IndexCall("*", "-1", self._word(right))
                pairs.setdefault(left - right, IndexCall("+", self._word(left), negative))
            pairs.setdefault(-left, IndexCall("*", "-1", self._word(left)))
            for right in range(2, LARGEST_PLAIN + 1):
                if left % right == 0:
                    parts = IndexCall("//", self._word(left), str(right))
                    pairs.setdefault(left // right, parts)
        return pairs

    def _word(self, number: int) -> str:
        word = self._known_whole(number)
        assert word is not None, "a number of the prompt has a word"
        return word

    def _known_whole(self, number: int) -> str | None:
        if abs(number) <= LARGEST_PLAIN:
            return str(number)
        return f"N{self.wholes.index(number)}" if number in self.wholes else None

    def real_of(self, number: float) -> str:
        """Return the word for a real number of an answer."""
        if number in self.reals:
            return f"F{self.reals.index(number)}"
        if number in PLAIN_REALS or number != number:
            return repr(number)
        if number in self.wholes:
            return f"N{self.wholes.index(int(number))}."
        return repr(float(number))

    def whole_value(self, word: str) -> int:
        """Return the whole number of a word; raise InputError if it has none."""
        if word.startswith("N") and word[1:].isdigit() and int(word[1:]) < len(self.wholes):
            return self.wholes[int(word[1:])]
        if len(word) <= 20 and word.removeprefix("-").isdigit():
            return int(word)
        raise InputError(f"{word!r} is no whole number or symbol of the prompt")

    def index_value(self, index: Index) -> int:
        """Return the number of an index without variables.

        Raises:
            InputError: A word has no number, or a divisor is not above zero.
        """
        if isinstance(index, str):
            return self.whole_value(index)
        left, right = self.index_value(index.left), self.index_value(index.right)
        if index.name in ("//", "%") and right <= 0:
            raise InputError(f"an index is divided by {right}")
        match index.name:
            case "+":
                return left + right
            case "*":
                return left * right
            case "//":
                return left // right
        return left % right

    def number_value(self, word: str) -> int | float | bool | None:
        """Return the number of a word; None where it has none."""
        if word in ("True", "False"):
            return word == "True"
        if word.startswith("F") and word[1:].isdigit() and int(word[1:]) < len(self.reals):
            return self.reals[int(word[1:])]
        if word.endswith(".") and word.startswith("N"):
            return float(self.whole_value(word[:-1]))
        try:
            return self.whole_value(word)
        except InputError:
            pass
        try:
            return float(word)
        except ValueError:
            return None
