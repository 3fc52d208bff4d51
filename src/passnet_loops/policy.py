"""An LLM that answers prompts of the loops form, in words that its grammar allows."""

from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from passnet_loops.checkpoint import load_llm
from passnet_loops.data.training_rows import words_of
from passnet_loops.decoding import DecodingPlan, decode
from passnet_loops.language.grammar import DONE, AnswerGrammar
from passnet_loops.language.prompt import Prompt

MAX_ROWS = 128
"""Answers that are decoded side by side."""

MAX_NEW_WORDS = 320
TEMPERATURE = 1.0
"""Temperature of sampled answers."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling of answers, greedy unless `temperature` is above zero."""

    num_samples: int = 1
    """Answers to each prompt."""

    temperature: float = 0.0
    seed: int = 0

    max_words: int = MAX_NEW_WORDS
    """Length at which an answer is cut off."""

    is_free: bool = False
    """Allow any word, not only those of the grammar."""


GREEDY = Sampling()


class AnswerPolicy(Protocol):
    """Anything that answers prompts: an LLM, or a script."""

    def answers(self, prompts: Sequence[Prompt], sampling: Sampling = GREEDY) -> list[list[str]]:
        """Return `num_samples` answers to each prompt."""
        ...

    def ranked(
        self, prompts: Sequence[Prompt], num_answers: int, sampling: Sampling
    ) -> list[list[str]]:
        """Return the distinct ones of `num_answers` answers to each prompt, the likeliest first."""
        ...


@dataclass
class LlmPolicy:
    """An LLM with its tokenizer."""

    llm: Any
    tokenizer: Any

    def answers(self, prompts: Sequence[Prompt], sampling: Sampling = GREEDY) -> list[list[str]]:
        """Return `num_samples` answers to each prompt."""
        import torch

        torch.manual_seed(sampling.seed)
        order = sorted(range(len(prompts)), key=lambda number: len(prompts[number].text.split()))
        answers: list[list[str]] = [[] for _ in prompts]
        num_samples = sampling.num_samples
        num_prompts = max(1, MAX_ROWS // num_samples)
        for start in range(0, len(order), num_prompts):
            numbers = order[start : start + num_prompts]
            decoded = self._batch([prompts[number] for number in numbers], sampling)
            for row, number in enumerate(numbers):
                answers[number] = decoded[row * num_samples : (row + 1) * num_samples]
        return answers

    def _batch(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[str]:
        """Answer prompts side by side; empty answers where a prompt leaves no room."""
        texts = [prompt.text + "\n" for prompt in prompts]
        inputs = self.tokenizer(
            texts, return_tensors="pt", padding=True, return_token_type_ids=False
        )
        room = self.llm.config.max_position_embeddings - inputs["input_ids"].shape[1]
        num_samples = sampling.num_samples
        if room <= 0:
            return [""] * (num_samples * len(prompts))
        words = None
        if not sampling.is_free:
            words = AllowedWords.of_prompts(self.tokenizer, prompts, num_samples)
        plan = DecodingPlan(
            self.tokenizer.eos_token_id,
            min(sampling.max_words, room),
            num_samples,
            sampling.temperature,
        )
        rows = decode(self.llm, inputs["input_ids"], inputs["attention_mask"], plan, words)
        return [words_of(self.tokenizer, row) for row in rows]

    def ranked(
        self, prompts: Sequence[Prompt], num_answers: int, sampling: Sampling
    ) -> list[list[str]]:
        """Return the distinct ones of `num_answers` answers to each prompt, the likeliest first.

        One is decoded greedily, the others are sampled.
        """
        greedy = replace(sampling, num_samples=1, temperature=0.0)
        answers = self.answers(prompts, greedy)
        if num_answers > 1:
            temperature = sampling.temperature or TEMPERATURE
            sampled = self.answers(
                prompts,
                replace(sampling, num_samples=num_answers - 1, temperature=temperature),
            )
            answers = [first + more for first, more in zip(answers, sampled, strict=True)]
        ranked = []
        for prompt, texts in zip(prompts, answers, strict=True):
            distinct = list(dict.fromkeys(texts))
            likelihoods = [0.0] * len(distinct)
            if len(distinct) > 1:
                likelihoods = self.log_likelihoods(prompt, distinct)
            order = sorted(range(len(distinct)), key=lambda number: -likelihoods[number])
            ranked.append([distinct[number] for number in order])
        return ranked

    def log_likelihoods(self, prompt: Prompt, answers: Sequence[str]) -> list[float]:
        """Return the natural logarithm of the probability of each answer."""
        import torch

        end = self.tokenizer.eos_token_id
        prompt_ids = self.tokenizer(prompt.text + "\n")["input_ids"]
        rows = [[*prompt_ids, *self.tokenizer(answer)["input_ids"], end] for answer in answers]
        width = max(map(len, rows))
        if width > self.llm.config.max_position_embeddings:
            return [0.0] * len(answers)
        pad = self.tokenizer.pad_token_id
        words = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        with torch.no_grad():
            logits = self.llm(input_ids=words).logits  # padding after a word changes nothing
        of_words = logits[:, :-1].log_softmax(-1).gather(2, words[:, 1:, None])[..., 0]
        return [
            float(of_words[number, len(prompt_ids) - 1 : len(row) - 1].sum())
            for number, row in enumerate(rows)
        ]


class AllowedWords:
    """The words that the grammar allows next, answer by answer: a `WordChoice` of `decode`."""

    def __init__(
        self, grammars: Sequence[AnswerGrammar], vocabulary: dict[str, int], end: int
    ) -> None:
        self._courses = [grammar.words() for grammar in grammars]
        self._allowed = [next(course) for course in self._courses]
        self._vocabulary = vocabulary
        self._words = {number: word for word, number in vocabulary.items()}
        self._end = end
        self._ids_of: dict[frozenset[str], Any] = {}

    @classmethod
    def of_prompts(
        cls, tokenizer: Any, prompts: Sequence[Prompt], num_samples: int
    ) -> "AllowedWords":
        """Allow words for `num_samples` answers to each prompt, one after the other."""
        vocabulary = tokenizer.get_vocab()
        numbers = [word for word in vocabulary if _is_number(word)]
        by_text = {prompt.text: AnswerGrammar(prompt, numbers) for prompt in prompts}
        grammars = [copy(by_text[p.text]) for p in prompts for _ in range(num_samples)]
        end = tokenizer.eos_token_id
        return cls(grammars, vocabulary | {DONE: end}, end)

    def mask(self, answers: Sequence[int], scores: Any) -> Any:
        """See `WordChoice`."""
        import torch

        rows = [self._ids(self._allowed[answer]) for answer in answers]
        lengths = torch.tensor([len(row) for row in rows])
        positions = torch.arange(len(rows)).repeat_interleave(lengths), torch.cat(rows)
        masked = torch.full_like(scores, float("-inf"))
        masked[positions] = scores[positions]
        return masked

    def _ids(self, allowed: frozenset[str]) -> Any:
        """Return the ids of words; the id of the end where the LLM knows none of them."""
        import torch

        if allowed not in self._ids_of:
            ids = [self._vocabulary[word] for word in allowed if word in self._vocabulary]
            self._ids_of[allowed] = torch.tensor(ids or [self._end])
        return self._ids_of[allowed]

    def follow(self, answer: int, word_id: int) -> None:
        """Continue an answer with a word."""
        word = self._words.get(word_id, DONE)
        if word in self._allowed[answer]:  # else the answer is over, or cannot go on
            with suppress(StopIteration):
                self._allowed[answer] = self._courses[answer].send(word)
                return
        self._allowed[answer] = frozenset((DONE,))


def _is_number(word: str) -> bool:
    if word in ("True", "False"):
        return True
    try:
        float(word)
    except ValueError:
        return False
    return True


def open_policy(folder: Path) -> LlmPolicy:
    """Load the LLM in the folder of a run; raise InputError if there is none."""
    return LlmPolicy(*load_llm(folder))
