"""The tokenizer of a small LLM: one token a word."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from passnet_loops.augment import NUM_SYMBOLS

MIN_COUNT = 2
"""How often a word must occur to get a token of its own."""

PAD, END, UNKNOWN = "<pad>", "<end>", "<unknown>"
NUM_VALUES = 40


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
