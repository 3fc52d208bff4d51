"""Rows of training data as texts with random names, split for watching the loss, and as tokens."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from passnet_loops.data.examples import TrainingRow

NUM_SYMBOLS = {"N": 16, "F": 6, "a": 12}
"""Names that symbols of a kind are drawn from, at least."""

_NAME = re.compile(r"^(N|F|a|t)(\d+)(\.?)$")

MIN_COUNT = 2
"""How often a word must occur to get a token of its own."""

PAD, END, UNKNOWN = "<pad>", "<end>", "<unknown>"
NUM_VALUES = 40


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
    first = set(structures[:count])
    return [row for row in rows if row.structure in first]


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


def renamed(prompt: str, answer: str, draw: random.Random) -> tuple[str, str]:
    """Rename sizes, real numbers, arguments and values in a prompt and its answer.

    Values keep their order and start at another number; the others are shuffled. Half of the time
    the two low floats, which are computed alike, are exchanged.
    """
    words = set(prompt.split())
    numbers: dict[str, list[int]] = {"N": [], "F": [], "a": [], "t": []}
    for word in words:
        if match := _NAME.match(word):
            numbers[match[1]].append(int(match[2]))
    names: dict[str, str] = {}
    for kind, used in numbers.items():
        count = max(used, default=-1) + 1
        if kind == "t":
            offset = draw.randint(0, max(0, 20 - count))
            names |= {f"t{n}": f"t{n + offset}" for n in range(count)}
        else:
            new_numbers = draw.sample(range(max(count, NUM_SYMBOLS[kind])), count)
            names |= {f"{kind}{n}": f"{kind}{new}" for n, new in enumerate(new_numbers)}
    if draw.random() < 0.5:
        names |= {"bfloat16": "float16", "float16": "bfloat16"}
    return _replaced(prompt, names), _replaced(answer, names)


def _replaced(text: str, names: dict[str, str]) -> str:
    return "\n".join(
        " ".join(_word(word, names) for word in line.split(" ")) for line in text.split("\n")
    )


def _word(word: str, names: dict[str, str]) -> str:
    bare = word.removesuffix(".") if word.startswith("N") else word
    return names.get(bare, bare) + word[len(bare) :]


def word_tokenizer(texts: Iterable[str]) -> Any:
    """Return a tokenizer of `transformers` whose tokens are the words of some texts.

    Numbered names get a token for each of the first numbers.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    counts = Counter(word for text in texts for word in text.split())
    names = [f"{kind}{n}" for kind, count in NUM_SYMBOLS.items() for n in range(count)]
    names += [f"N{n}." for n in range(NUM_SYMBOLS["N"])]
    names += [f"t{n}" for n in range(NUM_VALUES)]
    words = [word for word, count in sorted(counts.items()) if count >= MIN_COUNT]
    vocabulary = list(dict.fromkeys([PAD, END, UNKNOWN, *names, *words]))
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(vocabulary)}, unk_token=UNKNOWN)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def words_of(tokenizer: Any, ids: Iterable[int]) -> str:
    """Return the text of tokens, up to the end token."""
    words = []
    for token in tokenizer.convert_ids_to_tokens(list(ids)):
        if token == END:
            break
        if token != PAD:
            words.append(token)
    return " ".join(words)
