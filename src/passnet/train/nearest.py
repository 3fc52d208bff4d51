"""The nearest neighbour as a baseline: the answer of the training prompt that is most alike."""

from collections import Counter
from collections.abc import Sequence

from passnet.train.training_rows import TextPair


def nearest_answer(prompt: str, pairs: Sequence[TextPair]) -> str:
    """The answer to the prompt that shares the most pairs of neighbouring words with another."""
    wanted = _word_pairs(prompt)
    return max(pairs, key=lambda pair: _likeness(wanted, _word_pairs(pair.prompt))).answer


def _word_pairs(text: str) -> Counter[tuple[str, str]]:
    words = text.split()
    return Counter(zip(words, words[1:], strict=False))


def _likeness(one: Counter[tuple[str, str]], other: Counter[tuple[str, str]]) -> float:
    """Shared pairs as a share of all, from 0 to 1.

    Examples:
        >>> _likeness(_word_pairs("a b c"), _word_pairs("a b d"))
        0.3333333333333333
    """
    shared = (one & other).total()
    return shared / max(1, (one | other).total())
