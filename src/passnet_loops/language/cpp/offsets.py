"""Offsets of elements from a pointer, as sums with as little division as possible.

A loop over several contiguous axes splits its variable `x` into `x // n` and `x % n`. Their sum
times their steps, `n * (x // n) + x % n`, is `x` again. A compiler does not see this, and does not
vectorise a loop with 64-bit divisions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from passnet.errors import InputError
from passnet_loops.language.language import Index, IndexCall


@dataclass(frozen=True, slots=True)
class Part:
    """`//` or `%` of a sum by a number, both rounded down; or `*` of two sums."""

    name: str
    left: "Offset"
    right: "Offset"


Atom: TypeAlias = "Part | str"
"""A part, or a name that is known when the program runs."""


@dataclass(frozen=True)
class Offset:
    """A whole number: a constant, and atoms times whole numbers that are not 0."""

    constant: int = 0
    terms: Mapping[Atom, int] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.constant, frozenset(self.terms.items())))

    def __add__(self, addend: "Offset") -> "Offset":
        terms = dict(self.terms)
        for atom, times in addend.terms.items():
            terms[atom] = terms.get(atom, 0) + times
        nonzero = {atom: times for atom, times in terms.items() if times}
        return _joined(Offset(self.constant + addend.constant, nonzero))

    def __mul__(self, times: int) -> "Offset":
        terms = {atom: times * factor for atom, factor in self.terms.items() if times}
        return Offset(times * self.constant, terms)

    def times(self, name: str) -> int | None:
        """Return the factor of a name; None where the name is within a part."""
        if any(isinstance(atom, Part) and name in _names(atom) for atom in self.terms):
            return None
        return self.terms.get(name, 0)

    def text(self) -> str:
        """Return its C++."""
        words = [_times(_atom_text(atom), times) for atom, times in self.terms.items()]
        if self.constant or not words:
            words.append(str(self.constant))
        return " + ".join(words)


def offset_of(index: Index, number: Callable[[str], int | None]) -> Offset:
    """Return an index as a sum; `number` maps words to numbers, None for run-time values.

    Raises:
        InputError: The divisor is no number above zero.
    """
    if isinstance(index, str):
        value = number(index)
        return Offset(0, {index: 1}) if value is None else Offset(value)
    left, right = offset_of(index.left, number), offset_of(index.right, number)
    if index.name == "+":
        return left + right
    if index.name == "*":
        if not left.terms:
            left, right = right, left
        return left * right.constant if not right.terms else _part("*", left, right)
    if right.terms or right.constant <= 0:
        raise InputError(f"an index is divided by {right.text()}")
    if not left.terms:
        by = right.constant
        return Offset(left.constant // by if index.name == "//" else left.constant % by)
    return _part(index.name, left, right)


def words_of(index: Index) -> set[str]:
    """Return all words of an index."""
    if isinstance(index, IndexCall):
        return words_of(index.left) | words_of(index.right)
    return {index}


def _part(name: str, left: Offset, right: Offset) -> Offset:
    return Offset(0, {Part(name, left, right): 1})


def _joined(offset: Offset) -> Offset:
    """Replace each `n * (x // n) + x % n` by `x`."""
    for atom, times in offset.terms.items():
        if isinstance(atom, Part) and atom.name == "%":
            quotient = Part("//", atom.left, atom.right)
            if offset.terms.get(quotient) == times * atom.right.constant:
                terms = {a: t for a, t in offset.terms.items() if a not in (atom, quotient)}
                return Offset(offset.constant, terms) + atom.left * times
    return offset


def _names(part: Part) -> set[str]:
    atoms = [*part.left.terms, *part.right.terms]
    return {name for atom in atoms for name in (_names(atom) if isinstance(atom, Part) else {atom})}


def _times(text: str, times: int) -> str:
    return text if times == 1 else f"{text} * {times}"


def _atom_text(atom: Atom) -> str:
    if not isinstance(atom, Part):
        return atom
    left, right = atom.left.text(), atom.right.text()
    if atom.name == "*":
        return f"({left}) * ({right})"
    return f"{'quotient' if atom.name == '//' else 'rest'}({left}, {right})"
