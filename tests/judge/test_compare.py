"""The form of outputs is compared strictly; the text says what to change."""

import numpy as np
import pytest
import torch

from passnet.core.records.dtypes import to_storage
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.timing.probes import ProbedPlaces, compare_places
from passnet.judge.verdict.compare import compare_array, compare_forms, compare_values, same_order
from passnet.judge.worker.worker import _form


def forms(*values: object) -> list[OutputForm]:
    return [_form(value) for value in values]


BASE = torch.zeros(2, 3, 4)

CASES = {
    "the same": ("ok", [BASE.clone()]),
    "a contiguous part of a larger tensor": ("ok", [torch.zeros(2, 3, 8)[..., :4]]),
    "too few": ("wrong_shape", []),
    "too many": ("wrong_shape", [BASE, BASE]),
    "a shape that would broadcast": ("wrong_shape", [torch.zeros(1, 3, 4)]),
    "another order in memory": ("wrong_shape", [torch.zeros(2, 4, 3).transpose(1, 2)]),
    "an expanded tensor": ("wrong_shape", [torch.zeros(2, 3, 1).expand(2, 3, 4)]),
    "values that overlap": ("wrong_shape", [torch.zeros(27).as_strided((2, 3, 4), (1, 1, 1))]),
    "another dtype": ("wrong_dtype", [BASE.double()]),
    "a number": ("wrong_dtype", [1.0]),
    "nothing": ("wrong_dtype", [None]),
    "a sparse tensor": ("wrong_dtype", [BASE.to_sparse()]),
}


@pytest.mark.parametrize("name", CASES)
def test_outputs_must_have_the_form_of_the_reference(name: str) -> None:
    status, values = CASES[name]
    verdict = compare_forms(forms(*values), forms(BASE))
    assert verdict.status == status
    assert (verdict.text is None) == (status == "ok")


FREE = {**CASES, "another order in memory": ("ok", CASES["another order in memory"][1])}


@pytest.mark.parametrize("name", FREE)
def test_with_any_strides_the_memory_order_is_free_and_nothing_else(name: str) -> None:
    status, values = FREE[name]
    assert compare_forms(forms(*values), forms(BASE), "any").status == status


def test_an_expanded_reference_takes_a_dense_candidate() -> None:
    expanded = torch.zeros(2, 1, 4).expand(2, 3, 4)
    assert compare_forms(forms(BASE), forms(expanded)).status == "ok"


def test_channels_last_is_another_order() -> None:
    shape = (2, 3, 4, 5)
    plain = torch.zeros(shape)
    last = plain.contiguous(memory_format=torch.channels_last)
    assert not same_order(shape, last.stride(), plain.stride())
    assert same_order(shape, last.stride(), last.clone().stride())


def test_numbers_and_none_have_a_form_of_their_own() -> None:
    assert compare_forms(forms(3, None), forms(4, None)).status == "ok"
    assert compare_forms(forms(3.0), forms(3)).status == "wrong_dtype"
    assert compare_forms(forms(True), forms(torch.tensor(True))).status == "wrong_dtype"


@pytest.mark.parametrize("place", range(3))
def test_the_worst_of_several_outputs_counts(place: int) -> None:
    expected = [np.ones((4, 4), np.float32) for _ in range(3)]
    actual = [item.copy() for item in expected]
    made = forms(*map(torch.from_numpy, expected))
    assert compare_values(made, made, actual, expected).t == -10
    actual[place][1, 1] *= 1 + 1e-4
    assert compare_values(made, made, actual, expected).t == -4
    actual[place][1, 1] = np.nan
    verdict = compare_values(made, made, actual, expected)
    assert verdict.t is None and f"output {place}" in (verdict.text or "")


WORST = {
    "large": (("float32", 2.0, 1.5), "[1, 2]: 2, too large by 4.2e+04 times the tolerance"),
    "small": (("bfloat16", 1.0, 1.5), "[1, 2]: 1, too small by 21 times the tolerance"),
    "complex": (("complex64", 1j, 2.0), "[1, 2]: 0+1j, off by 1.8e+05 times the tolerance"),
    "nan": (("float16", np.nan, 1.5), "[1, 2]: nan, which the reference is not"),
    "infinite": (("float32", 2.0, -np.inf), "[1, 2]: 2, where the reference is not finite"),
    "whole": (("int64", 7, 8), "[1, 2]: 7, which the reference is not"),
    "truth": (("bool", True, False), "[1, 2]: True, which the reference is not"),
}


@pytest.mark.parametrize("name", WORST)
def test_the_worst_element_is_named_with_its_value_and_not_with_the_expected_one(name: str) -> None:
    (dtype, value, wanted), text = WORST[name]
    kind = dtype if dtype in ("int64", "bool", "complex64") else "float32"
    expected = np.ones((2, 3), kind)
    actual = expected.copy()
    actual[0, 1] *= 1 if dtype in ("int64", "bool") else 1.1  # less wrong, and before it
    actual[1, 2], expected[1, 2] = value, wanted
    sides = (to_storage(actual, dtype), to_storage(expected, dtype), dtype)
    comparison = compare_array("output 0", *sides)
    assert comparison.text is not None and f"output 0 is wrong at {text}" in comparison.text
    assert str(wanted) not in comparison.text
    assert compare_array("output 0", sides[0], sides[0], dtype).text is None


def test_the_worst_element_of_a_large_array_is_found_in_any_chunk() -> None:
    expected = np.ones(200_001, np.float32)
    for place in (3, 70_000, 200_000):
        actual = expected.copy()
        actual[::1000] += 1e-3
        actual[place] = 2
        assert f" at [{place}]: 2," in (compare_array("x", actual, expected, "float32").text or "")


def test_the_worst_element_at_probed_places_is_named_by_its_index_in_the_output() -> None:
    places = ProbedPlaces(1, "float32", np.array([[0, 2], [3, 4]]), axis=0, run=2)
    right = np.zeros(4, np.float32)
    wrong = right.copy()
    wrong[3] = 9.0  # the second of the run at [3, 4]
    text = compare_places([places], [wrong.tobytes()], [right.tobytes()]).text
    assert text == (
        "output 1 of a timed call is wrong at [4, 4]: 9, too large by 9e+05 times the tolerance at "
        "t = -5"
    )
