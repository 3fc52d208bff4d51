"""What a word of the command line names: a candidate, and the way it is called."""

import pytest

from passnet.errors import InputError
from passnet.judge.desk.candidates import parse_candidate


@pytest.mark.parametrize(
    ("word", "call", "residual"),
    [
        ("eager", "direct", "eager"),
        ("eager@guarded", "guarded", "eager"),
        ("null", "compiled", "eager"),
        ("null@direct", "direct", "eager"),
        ("inductor@guarded", "guarded", "eager"),
        ("inductor-precise@direct", "direct", "eager"),
        ("aoti", "compiled", "eager"),
        ("aoti@guarded", "guarded", "eager"),
        ("null@guarded@inductor", "guarded", "inductor"),
        ("null@inductor@guarded", "guarded", "inductor"),
        ("null@inlined", "compiled", "inlined"),
    ],
)
def test_a_flag_says_how_a_candidate_is_called(word: str, call: str, residual: str) -> None:
    template = parse_candidate(word, ()).template
    assert (template.name, template.call, template.residual) == (word, call, residual)


def test_a_candidate_is_called_in_one_way() -> None:
    with pytest.raises(InputError, match="null@guarded@direct: give either @direct or @guarded"):
        parse_candidate("null@guarded@direct", ())
    with pytest.raises(InputError, match="give either @inductor or @inlined"):
        parse_candidate("null@inlined@inductor", ())


@pytest.mark.parametrize(
    ("word", "meant"), [("aotI", "aoti"), ("inductor-precis", "inductor-precise"), ("nul", "null")]
)
def test_a_misspelt_baseline_is_asked_back(word: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"did you mean {meant}"):
        parse_candidate(word, ())
