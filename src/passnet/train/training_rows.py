"""Training data read back: rows to learn from, as texts, and those to watch the loss on."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from passnet.errors import InputError
from passnet.records.parquet import check_shards
from passnet.records.serialise import read_json
from passnet.train.augment import renamed
from passnet.train.build import MANIFEST_FILE, TrainingManifest
from passnet.train.examples import TRAINING, TrainingRow


@dataclass(frozen=True, slots=True)
class TextPair:
    """A prompt and what is to be answered."""

    prompt: str
    answer: str


def read_training(folder: Path) -> tuple[TrainingManifest, list[TrainingRow]]:
    """Training data with its manifest.

    Raises:
        InputError: there is none, or a file is not the one described.
    """
    manifest = read_json(folder / MANIFEST_FILE, TrainingManifest)
    files = check_shards(folder, manifest.shards, MANIFEST_FILE)
    rows = [row for file in files for row in TRAINING.read(file)]
    if not rows:
        raise InputError(f"{folder}: holds no row to learn from")
    return manifest, rows


def split_rows_to_watch(
    rows: Sequence[TrainingRow], share: float = 0.05
) -> tuple[list[TrainingRow], list[TrainingRow]]:
    """Rows to learn from, and rows to watch the loss on, apart by op sequence."""
    learned, watched = [], []
    for row in rows:
        digest = hashlib.sha256("\n".join(row.op_sequence).encode()).digest()
        (watched if digest[0] < 256 * share else learned).append(row)
    return learned, watched


def first_structures(rows: Sequence[TrainingRow], count: int | None) -> list[TrainingRow]:
    """The rows of the first so many structures, in a drawn order that does not depend on count."""
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
    """Each row so many times, every second time under other names if `is_renamed`; too long ones
    are left out.
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
