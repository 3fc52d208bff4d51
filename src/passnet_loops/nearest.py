"""The nearest neighbour as a baseline: the answer of the most similar training prompt."""

from collections import Counter
from collections.abc import Iterable

from passnet_loops.training_rows import TextPair

WordPairs = Counter[tuple[str, str]]


class NearestNeighbour:
    """The answers of training prompts, by similarity."""

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._known = [
            (counts, counts.total(), pair.answer)
            for pair in pairs
            if (counts := _word_pairs(pair.prompt))
        ]

    def answer(self, prompt: str) -> str:
        """Return the answer of the most similar prompt; of several, the first.

        Similarity is the Jaccard index of pairs of neighbouring words.
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
