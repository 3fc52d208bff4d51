import random

import pytest

from passnet.errors import InputError
from passnet_loops.data.examples import whole_or_ranges
from passnet_loops.language.answer_text import parse_answer, print_answer
from passnet_loops.language.expand import expand_answer
from passnet_loops.language.grammar import DONE, AnswerGrammar
from passnet_loops.language.prompt import Prompt, loops_prompt
from tests.loops.misfit import first_misfit
from tests.loops.softmax import softmax_graph


@pytest.fixture(scope="module")
def prompt() -> Prompt:
    return loops_prompt(softmax_graph())


@pytest.fixture(scope="module")
def teachers(prompt: Prompt) -> str:
    return print_answer(whole_or_ranges(prompt, "softmax"))


def test_what_the_teacher_says_fits(prompt: Prompt, teachers: str) -> None:
    assert first_misfit(AnswerGrammar(prompt), teachers) is None


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("range t0 t1", "range t1 t0", "t0"),
        ("range t0 t1", "range t0 t7", "t7"),
        ("a1 [ r0 ]", "a1 [ i0 r0 ]", "r0"),
        ("a1 [ r0 ]", "a1 [ r1 ]", "r1"),
        ("a1 [ r0 ]", "a7 [ r0 ]", "a7"),
        ("put t0 [ i0 r0 ]", "put a0 [ i0 r0 ]", "a0"),
        ("add a0", "plus a0", "plus"),
        (" s0", " s3", "s3"),
        ("for i0 N0", "for i0 N9", "N9"),
        ("end", "done", "done"),
    ],
)
def test_a_word_without_meaning_does_not_fit(
    prompt: Prompt, teachers: str, before: str, after: str, word: str
) -> None:
    assert before in teachers
    misfit = first_misfit(AnswerGrammar(prompt), teachers.replace(before, after, 1))
    assert misfit is not None
    assert misfit[1] == word


def test_an_answer_ends_only_when_all_results_are_put(prompt: Prompt) -> None:
    half = "range t0 t1 for i0 N0 i1 N1 : put t0 [ i0 i1 ] add a0 [ i0 i1 ] a1 [ i1 ] end"
    misfit = first_misfit(AnswerGrammar(prompt), half)
    assert misfit is not None
    assert misfit[1] == DONE
    assert first_misfit(AnswerGrammar(prompt), half.replace("t0 t1", "t0 t0")) is None


def test_what_is_drawn_from_it_can_be_read(prompt: Prompt) -> None:
    draw = random.Random(0)
    num_expanded = num_done = 0
    for _ in range(60):
        answer = drawn(prompt, draw)
        if answer is None:
            continue
        num_done += 1
        parse_answer(answer)
        try:
            expand_answer(prompt, answer)
            num_expanded += 1
        except InputError:
            pass
    assert num_done > 20
    assert num_expanded >= 0.8 * num_done


def drawn(prompt: Prompt, draw: random.Random) -> str | None:
    """An answer at random, inclined to end; None where it becomes long."""
    course = AnswerGrammar(prompt).words()
    allowed, words = next(course), []
    while len(words) < 300:
        short = sorted(w for w in allowed if w in (DONE, "end", "done", "]", ":") or w[1:] in "012")
        word = draw.choice(short if short and draw.random() < 0.8 else sorted(allowed))
        if word == DONE:
            return " ".join(words)
        words.append(word)
        allowed = course.send(word)
    return None
