import random
from itertools import product

import pytest

from passnet_loops.language.index_grammar import MAX_CHECKED_DEPTH, IndexGrammar, IndexWords

WHOLES = {"N0": 12, "N1": 40, "N2": 480} | {str(number): number for number in range(-8, 9)}
SIZES = {word: number for word, number in WHOLES.items() if number > 0}
VARIABLES = {"i0": (0, 11), "i1": (0, 39), "r0": (0, 2)}


def values(words: list[str]) -> list[int]:
    """What an index is for all values of its variables."""
    ranges = [range(low, high + 1) for low, high in VARIABLES.values()]
    return [
        _value(iter(words), dict(zip(VARIABLES, each, strict=True))) for each in product(*ranges)
    ]


def _value(words: object, known: dict[str, int]) -> int:
    word = next(words)  # type: ignore[call-overload]
    if word in ("+", "*", "//", "%"):
        left, right = _value(words, known), _value(words, known)
        return {
            "+": lambda: left + right,
            "*": lambda: left * right,
            "//": lambda: left // right,
            "%": lambda: left % right,
        }[word]()
    return known.get(word, WHOLES.get(word, 0))


def depth_of(words: list[str]) -> int:
    """How deep calls stand in each other."""
    ends: list[int] = []
    deepest = 0
    for word in words:
        if word in ("+", "*", "//", "%"):
            ends.append(2)
            deepest = max(deepest, len(ends))
            continue
        while ends:
            ends[-1] -= 1
            if ends[-1]:
                break
            ends.pop()
    return deepest


def is_said(course: IndexWords, words: str) -> bool:
    """Whether the grammar allows these words, and no fewer."""
    allowed = next(course)
    said = words.split()
    for place, word in enumerate(said):
        if word not in allowed:
            return False
        try:
            allowed = course.send(word)
        except StopIteration:
            return place == len(said) - 1
    return False


@pytest.mark.parametrize("size", [1, 12, 40, 480])
def test_an_index_stays_inside_of_its_axis(size: int) -> None:
    draw = random.Random(size)
    num_calls = 0
    for _ in range(150):
        course = IndexGrammar(VARIABLES, WHOLES, SIZES).words(size)
        allowed, words = next(course), []
        while True:
            shallow = sorted(allowed - {"+", "*", "//", "%"})
            deep = sorted(allowed & {"+", "*", "//", "%"})
            word = draw.choice(deep if deep and (len(words) < 2 or not shallow) else shallow)
            words.append(word)
            try:
                allowed = course.send(word)
            except StopIteration:
                break
        if depth_of(words) > MAX_CHECKED_DEPTH:
            continue
        num_calls += len(words) > 1
        assert min(values(words)) >= 0 and max(values(words)) < size, words
    assert num_calls > 50 or size == 1


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (480, "+ * i0 N1 i1"),
        (12, "// + * i0 N1 i1 N1"),
        (40, "% + * i0 N1 i1 N1"),
        (12, "+ 8 r0"),
        (12, "+ N0 * -1 + i0 1"),
        (480, "+ i1 + N2 * -1 N1"),
        (12, "// i1 4"),
    ],
)
def test_what_stays_inside_may_be_said(size: int, words: str) -> None:
    assert is_said(IndexGrammar(VARIABLES, WHOLES, SIZES).words(size), words)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (12, "i1"),
        (12, "+ i0 1"),
        (480, "+ * i0 N1 N1"),
        (40, "* i0 4"),
        (12, "% i1 N1"),
        (12, "// i1 3"),
        (12, "+ i0 -1"),
        (12, "N0"),
    ],
)
def test_what_may_leave_the_axis_may_not(size: int, words: str) -> None:
    assert not is_said(IndexGrammar(VARIABLES, WHOLES, SIZES).words(size), words)
    assert is_said(IndexGrammar(VARIABLES, WHOLES, SIZES).words(None), words)
