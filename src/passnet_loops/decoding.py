"""Decoding of many answers side by side; an answer that has ended leaves the batch.

`generate` of transformers keeps the whole batch until the longest answer has ended and copies all
keys and values of attention at each word. On a CPU, that takes most of the time of a small LLM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

ROOM = 64
"""Words that keys and values have room to grow by."""

LEAST_ALIVE = 0.75
"""Share of a batch that still goes on, below which ended answers are taken out."""


class WordChoice(Protocol):
    """The words that may come next in the answers of a batch."""

    def mask(self, answers: Sequence[int], scores: Any) -> Any:
        """Return the scores of next words, of shape (answers, vocabulary), with minus infinity for
        words that may not come.
        """

    def follow(self, answer: int, word_id: int) -> None:
        """Continue the answer of a number with a word."""


@dataclass(frozen=True, slots=True)
class DecodingPlan:
    """The decoding of answers; `end` is the id of the word that ends one."""

    end: int
    max_words: int
    num_samples: int = 1
    temperature: float = 0.0
    """Zero decodes greedily."""


def decode(
    llm: Any,
    input_ids: Any,
    attention_mask: Any,
    plan: DecodingPlan,
    words: WordChoice | None = None,
) -> list[list[int]]:
    """Return the word ids of answers, with `end` where an answer has ended.

    Args:
        llm: A causal language model of transformers.
        input_ids: Prompts, padded on the left.
        attention_mask: 0 for padding, else 1.
        plan: The samples of a prompt follow each other.
        words: Allowed words; any without it.

    Shapes:
        input_ids, attention_mask: (prompts, words).
    """
    import torch

    cache = _roomy_cache(llm)
    caches = {_cache_name(llm): cache}
    answers: list[list[int]] = [[] for _ in range(len(input_ids) * plan.num_samples)]
    alive = list(range(len(answers)))
    positions = (attention_mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        scores = _scores(llm, caches, input_ids, attention_mask, positions)
        cache.reorder_cache(torch.arange(len(input_ids)).repeat_interleave(plan.num_samples))
        scores, mask, position = (
            tensor.repeat_interleave(plan.num_samples, 0)
            for tensor in (scores, attention_mask, positions[:, -1:])
        )
        in_batch = list(alive)  # the answers of its rows; some may have ended
        for length in range(1, plan.max_words + 1):
            row_of = {number: row for row, number in enumerate(in_batch)}
            rows = [row_of[number] for number in alive]
            alive_scores = scores[rows].float()
            if words is not None:
                alive_scores = words.mask(alive, alive_scores)
            next_words = _next_words(alive_scores, plan.temperature).tolist()
            for number, word in zip(alive, next_words, strict=True):
                answers[number].append(word)
                if words is not None and word != plan.end:
                    words.follow(number, word)
            alive = [number for number in alive if answers[number][-1] != plan.end]
            if not alive or length == plan.max_words:
                break
            if len(alive) < LEAST_ALIVE * len(in_batch):
                rows_alive = torch.tensor([row_of[number] for number in alive])
                cache.reorder_cache(rows_alive)
                mask, position, in_batch = mask[rows_alive], position[rows_alive], list(alive)
            last = torch.tensor([[answers[number][-1]] for number in in_batch])
            mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
            position = position + 1
            scores = _scores(llm, caches, last, mask, position)
    return answers


def _scores(llm: Any, caches: dict[str, Any], words: Any, mask: Any, positions: Any) -> Any:
    """Return the scores of next words, of shape (answers, vocabulary)."""
    inputs = {"input_ids": words, "attention_mask": mask, "position_ids": positions}
    return llm(**inputs, **caches, use_cache=True, logits_to_keep=1).logits[:, -1]


def _next_words(scores: Any, temperature: float) -> Any:
    import torch

    if temperature <= 0:
        return scores.argmax(-1)
    return torch.multinomial((scores / temperature).softmax(-1), 1)[:, 0]


def _cache_name(llm: Any) -> str:
    """Return the name of the argument for keys and values; transformers renames it in 5.40."""
    import inspect

    return "cache" if "cache" in inspect.signature(llm.forward).parameters else "past_key_values"


def _roomy_cache(llm: Any) -> Any:
    """Return a cache whose layers of attention have room to grow, so that little is copied."""
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
    cache.layers = [RoomyLayer() if type(x) is DynamicLayer else x for x in cache.layers]
    return cache


class _Memory:
    """Memory for states of shape (answers, heads, words, width) that grow word by word."""

    def __init__(self) -> None:
        self._whole: Any = None
        self._latest: Any = None

    def appended(self, states: Any, new: Any) -> Any:
        """Append new states: in place if `states` came from here last and there is room."""
        start, stop = states.shape[2], states.shape[2] + new.shape[2]
        if states is not self._latest or self._whole.shape[2] < stop:
            self._whole = new.new_empty((*new.shape[:2], stop + ROOM, new.shape[3]))
            self._whole[:, :, :start] = states
        self._whole[:, :, start:stop] = new
        self._latest = self._whole[:, :, :stop]
        return self._latest
