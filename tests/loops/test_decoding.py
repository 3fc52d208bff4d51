"""Answers of an llm word by word are those that transformers generates; ended ones leave it."""

from typing import Any

import pytest
import torch

from passnet_loops.checkpoint import new_llm, require_transformers
from passnet_loops.data.training_rows import word_tokenizer
from passnet_loops.decoding import ROOM, DecodingPlan, decode
from passnet_loops.settings import LlmShape

WORDS = [f"w{number}" for number in range(40)]
PROMPTS = ["w1 w2 w3 w4 w5 w6 w7", "w9", "w3 w3 w8"]


@pytest.fixture(scope="module")
def llm_of_words() -> tuple[Any, Any]:
    pytest.importorskip("transformers", reason="needs passnet[train]")
    require_transformers()
    tokenizer = word_tokenizer([" ".join(WORDS)])
    llm = new_llm(tokenizer, LlmShape(48, 4, 2, 512), 5).eval()
    with torch.no_grad():
        for name, parameter in llm.named_parameters():
            if "layers" in name and parameter.ndim > 1:
                parameter *= 10  # as weights begin, all that came before weighs the same
    return llm, tokenizer


def test_likeliest_words_are_those_that_transformers_generates(
    llm_of_words: tuple[Any, Any],
) -> None:
    llm, tokenizer = llm_of_words
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True, return_token_type_ids=False)
    count = ROOM + 40  # memory is full once
    wanted = llm.generate(
        **inputs, max_new_tokens=count, do_sample=False, pad_token_id=tokenizer.pad_token_id
    )[:, inputs["input_ids"].shape[1] :]
    end = tokenizer.eos_token_id
    made = decode(llm, inputs["input_ids"], inputs["attention_mask"], DecodingPlan(end, count))
    assert made == [_until(row, end) for row in wanted.tolist()]


class EndsAt:
    """Ends each answer at a length of its own, and keeps what it was asked."""

    def __init__(self, lengths: list[int], end: int) -> None:
        self.lengths, self.end = lengths, end
        self.words: dict[int, list[int]] = {number: [] for number in range(len(lengths))}
        self.asked: list[list[int]] = []

    def mask(self, answers: Any, scores: Any) -> Any:
        self.asked.append(list(answers))
        left = scores.clone()
        for row, answer in enumerate(answers):
            if len(self.words[answer]) == self.lengths[answer]:
                left[row] = float("-inf")
            left[row, self.end] = 0.0 if len(self.words[answer]) == self.lengths[answer] else -1e9
        return left

    def follow(self, answer: int, number: int) -> None:
        self.words[answer].append(number)


def test_an_answer_that_ends_changes_no_other(llm_of_words: tuple[Any, Any]) -> None:
    llm, tokenizer = llm_of_words
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True, return_token_type_ids=False)
    ids, mask, end = inputs["input_ids"], inputs["attention_mask"], tokenizer.eos_token_id
    lengths = [3, 12, 1, 5, 30, 2]
    words = EndsAt(lengths, end)
    made = decode(llm, ids, mask, DecodingPlan(end, 40, num_samples=2), words)
    assert [len(each) for each in made] == [length + 1 for length in lengths]
    assert [each[:-1] for each in made] == [words.words[n] for n in range(6)]
    assert words.asked[0] == [0, 1, 2, 3, 4, 5]
    assert words.asked[2] == [0, 1, 3, 4, 5] and words.asked[-1] == [4]
    longest = decode(llm, ids, mask, DecodingPlan(end, 40), EndsAt([30, 30, 30], end))
    for number, each in enumerate(made):
        assert each[:-1] == longest[number // 2][: len(each) - 1]


def test_drawn_words_depend_on_seed_and_temperature(llm_of_words: tuple[Any, Any]) -> None:
    llm, tokenizer = llm_of_words
    inputs = tokenizer(PROMPTS, return_tensors="pt", padding=True, return_token_type_ids=False)

    def drawn(seed: int, temperature: float) -> list[list[int]]:
        torch.manual_seed(seed)
        plan = DecodingPlan(tokenizer.eos_token_id, 12, 3, temperature)
        return decode(llm, inputs["input_ids"], inputs["attention_mask"], plan)

    assert drawn(0, 1.0) == drawn(0, 1.0) != drawn(1, 1.0)
    assert len(drawn(0, 1.0)) == 9
    cold = drawn(0, 1e-4)  # all but the likeliest
    assert cold[0] == cold[1] == cold[2]


def _until(row: list[int], end: int) -> list[int]:
    return row[: row.index(end) + 1] if end in row else row
