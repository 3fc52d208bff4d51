"""The nearest neighbour as a baseline: the answer of the training prompt that is most alike."""

from collections import Counter
from collections.abc import Iterable

from passnet_loops.training_rows import TextPair

WordPairs = Counter[tuple[str, str]]


class NearestNeighbour:
    """Gives prompts the answers that others have."""

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._known = [
            (counts, counts.total(), pair.answer)
            for pair in pairs
            if (counts := _word_pairs(pair.prompt))
        ]

    def answer(self, prompt: str) -> str:
        """The answer to the prompt that shares the most pairs of neighbouring words with another,
        as a share of those that either has; the first of several.
        """
        wanted = _word_pairs(prompt)
        total = wanted.total()

        def likeness(known: tuple[WordPairs, int, str]) -> float:
            counts, known_total, _ = known
            shared = sum(min(count, counts.get(each, 0)) for each, count in wanted.items())
            return shared / (total + known_total - shared)

        return max(self._known, key=likeness)[2]


def _word_pairs(text: str) -> WordPairs:
    words = text.split()
    return Counter(zip(words, words[1:], strict=False))
