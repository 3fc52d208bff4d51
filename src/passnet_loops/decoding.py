"""Answers of an llm word by word, many side by side: one that has ended leaves the batch.

What transformers generates stays in the batch until the longest answer has ended, and all keys and
values of attention are copied at each word; on a CPU that takes most of the time of a small llm.
"""

from collections.abc import Sequence
from typing import Any, Protocol

ROOM = 64
"""Keys and values are kept with room for so many more words."""

LEAST_ALIVE = 0.75
"""When a smaller share of the answers of a batch go on, those that have ended are taken out."""


class WordChoice(Protocol):
    """Which words may come next in the answers of a batch."""

    def leave(self, answers: Sequence[int], scores: Any) -> Any:
        """Given the numbers of some answers and the scores of their next words, of shape (answers,
        vocabulary), the scores with minus infinity for words that may not come.
        """

    def follow(self, answer: int, number: int) -> None:
        """Is told the number of an answer and the word that it goes on with, by its id."""


def decode(
    llm: Any,
    input_ids: Any,
    attention_mask: Any,
    end: int,
    max_words: int,
    num_samples: int = 1,
    temperature: float = 0.0,
    words: WordChoice | None = None,
) -> list[list[int]]:
    """The ids of the words of answers to some prompts, with `end` where an answer has ended.

    Args:
        llm: a causal language model of transformers.
        input_ids: the prompts, of shape (prompts, words), filled up on the left.
        attention_mask: 0 where they are filled up and 1 elsewhere, of the same shape.
        end: the id of the word that ends an answer.
        max_words: how many an answer has at most.
        num_samples: answers to each prompt, which stand one after the other.
        temperature: at which words are drawn; 0 takes the likeliest.
        words: which may come; any without it.
    """
    import torch

    cache = _roomy_cache(llm)
    kept = {_cache_name(llm): cache}
    answers: list[list[int]] = [[] for _ in range(len(input_ids) * num_samples)]
    alive = list(range(len(answers)))
    positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        scores = _scores(llm, kept, input_ids, attention_mask, positions)
        cache.reorder_cache(torch.arange(len(input_ids)).repeat_interleave(num_samples))
        scores, mask, position = (
            each.repeat_interleave(num_samples, 0)
            for each in (scores, attention_mask, positions[:, -1:])
        )
        in_batch = list(alive)  # the answers of its rows, of which some may have ended
        for place in range(max_words):
            row_of = {number: row for row, number in enumerate(in_batch)}
            rows = [row_of[number] for number in alive]
            alive_scores = scores[rows].float()
            if words is not None:
                alive_scores = words.leave(alive, alive_scores)
            chosen = _chosen(alive_scores, temperature).tolist()
            for number, word in zip(alive, chosen, strict=True):
                answers[number].append(word)
                if words is not None and word != end:
                    words.follow(number, word)
            alive = [number for number, word in zip(alive, chosen, strict=True) if word != end]
            if not alive or place + 1 == max_words:
                break
            if len(alive) < LEAST_ALIVE * len(in_batch):
                going_on = torch.tensor([row_of[number] for number in alive])
                cache.reorder_cache(going_on)
                mask, position, in_batch = mask[going_on], position[going_on], list(alive)
            last = torch.tensor([[answers[number][-1]] for number in in_batch])
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            position = position + 1
            scores = _scores(llm, kept, last, mask, position)
    return answers


def _scores(llm: Any, kept: dict[str, Any], words: Any, mask: Any, positions: Any) -> Any:
    """The scores of what comes after some words, of shape (answers, vocabulary)."""
    return llm(
        input_ids=words, attention_mask=mask, position_ids=positions, use_cache=True,
        logits_to_keep=1, **kept,
    ).logits[:, -1]  # fmt: skip


def _chosen(scores: Any, temperature: float) -> Any:
    import torch

    if temperature <= 0:
        return scores.argmax(-1)
    return torch.multinomial((scores / temperature).softmax(-1), 1)[:, 0]


def _cache_name(llm: Any) -> str:
    """What the llm calls the cache of its keys and values: transformers renames it in 5.40."""
    import inspect

    return "cache" if "cache" in inspect.signature(llm.forward).parameters else "past_key_values"


def _roomy_cache(llm: Any) -> Any:
    """A cache whose layers of attention have room for more words, so that few are copied."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    class RoomyLayer(DynamicLayer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self._memories = _Memory(), _Memory()

        def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> Any:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
                self.keys, self.values = key_states[:, :, :0], value_states[:, :, :0]
            keys, values = self._memories
            self.keys = keys.appended(self.keys, key_states)
            self.values = values.appended(self.values, value_states)
            return self.keys, self.values

    cache = DynamicCache(config=llm.config)
    cache.layers = [RoomyLayer() if type(each) is DynamicLayer else each for each in cache.layers]
    return cache


class _Memory:
    """Where states of shape (answers, heads, words, width) grow word by word."""

    def __init__(self) -> None:
        self._whole: Any = None
        self._given: Any = None

    def appended(self, known: Any, new: Any) -> Any:
        """States with new ones behind them, in the same memory where these are the last ones given
        and there is room.
        """
        start, stop = known.shape[2], known.shape[2] + new.shape[2]
        if known is not self._given or self._whole.shape[2] < stop:
            self._whole = new.new_empty((*new.shape[:2], stop + ROOM, new.shape[3]))
            self._whole[:, :, :start] = known
        self._whole[:, :, start:stop] = new
        self._given = self._whole[:, :, :stop]
        return self._given
