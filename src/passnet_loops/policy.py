"""An llm that answers prompts of the loops form, in words that have a meaning for the prompt."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from passnet_loops.checkpoint import load_llm
from passnet_loops.decoding import decode
from passnet_loops.language.grammar import DONE, AnswerGrammar
from passnet_loops.language.prompt import Prompt
from passnet_loops.tokenizer import words_of

MAX_ROWS = 128
"""So many answers are made side by side."""

MAX_NEW_WORDS = 320
TEMPERATURE = 1.0
"""At which answers are drawn that stand beside the likeliest."""


@dataclass
class Policy:
    """An llm with its tokenizer."""

    llm: Any
    tokenizer: Any

    def answers(
        self,
        prompts: Sequence[Prompt],
        num_samples: int = 1,
        temperature: float = 0.0,
        seed: int = 0,
        max_words: int = MAX_NEW_WORDS,
        is_free: bool = False,
    ) -> list[list[str]]:
        """Answers to each prompt: the likeliest one, or so many drawn at a temperature.

        Each word is one that the grammar allows at its place, unless `is_free`.
        """
        import torch

        torch.manual_seed(seed)
        order = sorted(range(len(prompts)), key=lambda number: len(prompts[number].text.split()))
        answers: list[list[str]] = [[] for _ in prompts]
        limit = self.llm.config.max_position_embeddings
        num_prompts = max(1, MAX_ROWS // num_samples)
        for start in range(0, len(order), num_prompts):
            numbers = order[start : start + num_prompts]
            texts = [prompts[number].text + "\n" for number in numbers]
            inputs = self.tokenizer(
                texts, return_tensors="pt", padding=True, return_token_type_ids=False
            )
            room = limit - inputs["input_ids"].shape[1]
            if room <= 0:
                for number in numbers:
                    answers[number] = [""] * num_samples
                continue
            words = None
            if not is_free:
                asked = [prompts[number] for number in numbers]
                words = AllowedWords.of_prompts(self.tokenizer, asked, num_samples)
            made = decode(
                self.llm, inputs["input_ids"], inputs["attention_mask"],
                self.tokenizer.eos_token_id, min(max_words, room), num_samples, temperature,
                words,
            )  # fmt: skip
            for place, number in enumerate(numbers):
                rows = made[place * num_samples : (place + 1) * num_samples]
                answers[number] = [words_of(self.tokenizer, row) for row in rows]
        return answers

    def ranked(
        self,
        prompts: Sequence[Prompt],
        num_answers: int,
        seed: int = 0,
        temperature: float = TEMPERATURE,
        is_free: bool = False,
    ) -> list[list[str]]:
        """The different ones of so many answers to each prompt, the likeliest first.

        One is made of the likeliest words, which need not be the likeliest answer; the others are
        drawn at a temperature.
        """
        answers = self.answers(prompts, is_free=is_free)
        if num_answers > 1:
            drawn = self.answers(prompts, num_answers - 1, temperature, seed, is_free=is_free)
            answers = [first + others for first, others in zip(answers, drawn, strict=True)]
        ranked = []
        for prompt, given in zip(prompts, answers, strict=True):
            different = list(dict.fromkeys(given))
            likelihoods = [0.0] * len(different)
            if len(different) > 1:
                likelihoods = self.log_likelihoods(prompt, different)
            order = sorted(range(len(different)), key=lambda number: -likelihoods[number])
            ranked.append([different[number] for number in order])
        return ranked

    def log_likelihoods(self, prompt: Prompt, answers: Sequence[str]) -> list[float]:
        """How likely the llm finds each of some answers to a prompt, as natural logarithms."""
        import torch

        end = self.tokenizer.eos_token_id
        asked = self.tokenizer(prompt.text + "\n")["input_ids"]
        rows = [[*asked, *self.tokenizer(answer)["input_ids"], end] for answer in answers]
        width = max(map(len, rows))
        if width > self.llm.config.max_position_embeddings:
            return [0.0] * len(answers)
        pad = self.tokenizer.pad_token_id
        words = torch.tensor([row + [pad] * (width - len(row)) for row in rows])
        with torch.no_grad():
            logits = self.llm(input_ids=words).logits  # what comes after a word changes nothing
        of_words = logits[:, :-1].log_softmax(-1).gather(2, words[:, 1:, None])[..., 0]
        return [
            float(of_words[number, len(asked) - 1 : len(row) - 1].sum())
            for number, row in enumerate(rows)
        ]


def keep_to_grammar(
    llm: Any, tokenizer: Any, texts: Sequence[str], prompt_of: Callable[[int], Prompt]
) -> None:
    """Let an llm that a trainer holds answer some prompts in words that the grammar allows.

    `prompt_of` gives the prompt of a text, by its number.
    """
    known = {tuple(ids): number for number, ids in enumerate(tokenizer(list(texts))["input_ids"])}

    def generate(input_ids: Any, attention_mask: Any, generation_config: Any, **_: Any) -> Any:
        import torch

        asked = [
            prompt_of(known[tuple(token for token in row if token != tokenizer.pad_token_id)])
            for row in input_ids.tolist()
        ]
        made = decode(
            llm, input_ids, attention_mask, tokenizer.eos_token_id,
            generation_config.max_new_tokens, temperature=generation_config.temperature,
            words=AllowedWords.of_prompts(tokenizer, asked, 1),
        )  # fmt: skip
        width = max(map(len, made))
        rows = [row + [tokenizer.pad_token_id] * (width - len(row)) for row in made]
        return torch.cat([input_ids, torch.tensor(rows)], 1)

    llm.generate = generate


class AllowedWords:
    """Leaves an llm the words that the grammar allows, answer by answer."""

    def __init__(
        self, grammars: Sequence[AnswerGrammar], vocabulary: dict[str, int], end: int
    ) -> None:
        self._courses = [grammar.words() for grammar in grammars]
        self._allowed = [next(course) for course in self._courses]
        self._vocabulary = vocabulary
        self._words = {number: word for word, number in vocabulary.items()}
        self._end = end
        self._known_ids: dict[frozenset[str], Any] = {}

    @classmethod
    def of_prompts(
        cls, tokenizer: Any, prompts: Sequence[Prompt], num_samples: int
    ) -> "AllowedWords":
        """Of so many answers to each prompt, one after the other."""
        vocabulary = tokenizer.get_vocab()
        numbers = [word for word in vocabulary if _is_number(word)]
        by_text = {prompt.text: AnswerGrammar(prompt, numbers) for prompt in prompts}
        grammars = [copy(by_text[p.text]) for p in prompts for _ in range(num_samples)]
        end = tokenizer.eos_token_id
        return cls(grammars, vocabulary | {DONE: end}, end)

    def leave(self, answers: Sequence[int], scores: Any) -> Any:
        """The scores of the next words of some answers, minus infinity for those that may not come;
        of shape (answers, vocabulary).
        """
        import torch

        rows = [self._ids(self._allowed[answer]) for answer in answers]
        lengths = torch.tensor([len(row) for row in rows])
        places = torch.arange(len(rows)).repeat_interleave(lengths), torch.cat(rows)
        left = torch.full_like(scores, float("-inf"))
        left[places] = scores[places]
        return left

    def _ids(self, allowed: frozenset[str]) -> Any:
        """The ids of some words; of the end where the llm knows none of them."""
        import torch

        if allowed not in self._known_ids:
            ids = [self._vocabulary[word] for word in allowed if word in self._vocabulary]
            self._known_ids[allowed] = torch.tensor(ids or [self._end])
        return self._known_ids[allowed]

    def follow(self, answer: int, number: int) -> None:
        """An answer goes on with the word of an id."""
        word = self._words.get(number, DONE)
        if word not in self._allowed[answer]:  # it is over, or has no way on
            self._allowed[answer] = frozenset((DONE,))
            return
        try:
            self._allowed[answer] = self._courses[answer].send(word)
        except StopIteration:
            self._allowed[answer] = frozenset((DONE,))


def _is_number(word: str) -> bool:
    if word in ("True", "False"):
        return True
    try:
        float(word)
    except ValueError:
        return False
    return True


def open_policy(folder: Path) -> Policy:
    """The llm of a run's folder.

    Raises:
        InputError: there is none.
    """
    llm, tokenizer = load_llm(folder)
    return Policy(llm, tokenizer)
