"""Rows of training data as texts to learn from, and to watch the loss on."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from passnet_loops.augment import renamed
from passnet_loops.examples import TrainingRow


@dataclass(frozen=True, slots=True)
class TextPair:
    """A prompt and its answer."""

    prompt: str
    answer: str


def split_rows_to_watch(
    rows: Sequence[TrainingRow], share: float = 0.05
) -> tuple[list[TrainingRow], list[TrainingRow]]:
    """Split rows by op sequence into those to learn and those to watch the loss on."""
    learned, watched = [], []
    for row in rows:
        digest = hashlib.sha256("\n".join(row.op_sequence).encode()).digest()
        (watched if digest[0] < 256 * share else learned).append(row)
    return learned, watched


def first_structures(rows: Sequence[TrainingRow], count: int | None) -> list[TrainingRow]:
    """Return the rows of the first `count` structures, in a fixed random order."""
    structures = sorted({row.structure for row in rows})
    chosen = set(structures[:count])
    return [row for row in rows if row.structure in chosen]


def pairs_of(
    rows: Sequence[TrainingRow],
    num_copies: int,
    seed: int,
    max_words: int,
    is_renamed: bool = True,
) -> list[TextPair]:
    """Return `num_copies` texts of each row that is short enough.

    Every second copy has other names if `is_renamed`.
    """
    draw = random.Random(seed)  # noqa: S311 (no secret)
    pairs = []
    for copy in range(num_copies):
        for row in rows:
            if row.words <= max_words:
                texts = (row.prompt, row.loops)
                if copy % 2 and is_renamed:
                    texts = renamed(*texts, draw)
                pairs.append(TextPair(texts[0] + "\n", texts[1]))
    return pairs
