"""The smallest level at which two tensors agree: the table, the brute force, and the odd values."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from passnet.core.records.dtypes import from_storage, to_storage
from passnet.judge.score.tolerance import CHUNK_ELEMENTS, EXPONENTS, LEVELS, smallest_t, tolerances

TABLE = {  # dtype: rtol at -5, -3, -1, as published
    "float16": (1e-3, 1.58e-2, 2.51e-1),
    "bfloat16": (1.6e-2, 8.36e-2, 4.37e-1),
    "float32": (1.3e-6, 2.94e-4, 6.65e-2),
    "float64": (1e-7, 6.31e-5, 3.98e-2),
}


@pytest.mark.parametrize("dtype", TABLE)
def test_the_tolerances_are_the_published_ones(dtype: str) -> None:
    assert tuple(tolerances(dtype, t)[1] for t in (-5, -3, -1)) == TABLE[dtype]
    assert tolerances(dtype, 0) == (1.0, 1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_level_minus_five_is_what_torch_takes_for_close(dtype: str) -> None:
    one = torch.ones(1, dtype=getattr(torch, dtype))
    atol, rtol = tolerances(dtype, -5)
    for factor, close in ((0.9, True), (3.0, False)):
        actual = 1.0 + factor * (atol + rtol)
        stored = to_storage(np.array([actual], np.float64), dtype)
        wide = torch.tensor(from_storage(stored, dtype).astype(np.float64))
        expected = to_storage(np.array([1.0], np.float64), dtype)
        level = smallest_t(stored, expected, dtype)
        assert (level is not None and level <= -5) is close
        if close:
            torch.testing.assert_close(wide.to(one.dtype), one)
        else:
            with pytest.raises(AssertionError):
                torch.testing.assert_close(wide.to(one.dtype), one)


def brute_force(actual: np.ndarray, expected: np.ndarray, dtype: str) -> int | None:
    """All levels in turn, by the definition."""
    a = from_storage(actual, dtype).astype(np.float64)
    e = from_storage(expected, dtype).astype(np.float64)
    for t in LEVELS:
        atol, rtol = tolerances(dtype, t)
        if (np.abs(a - e) <= atol + rtol * np.abs(e)).all():
            return t
    return None


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(EXPONENTS)),
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-14, 6)), min_size=1, max_size=20),
)
def test_one_pass_gives_what_fifteen_passes_give(
    dtype: str, pairs: list[tuple[float, float]]
) -> None:
    values = np.array([value for value, _ in pairs])
    errors = np.array([10**exponent for _, exponent in pairs])
    expected = to_storage(values, dtype)
    actual = to_storage(values + errors, dtype)
    assert smallest_t(actual, expected, dtype) == brute_force(actual, expected, dtype)


@given(st.integers(0, 3 * CHUNK_ELEMENTS - 1))
@settings(max_examples=20, deadline=None)
def test_a_single_wrong_element_is_found_in_any_chunk(place: int) -> None:
    expected = np.ones(3 * CHUNK_ELEMENTS, np.float32)
    actual = expected.copy()
    actual[place] += 1e-3
    assert smallest_t(actual, expected, "float32") == -3
    assert brute_force(actual, expected, "float32") == -3


def test_nan_agrees_with_nan_only_and_infinity_with_itself_only() -> None:
    nan, inf = np.float32("nan"), np.float32("inf")
    expected = np.array([1.0, nan, inf, -inf], np.float32)
    assert smallest_t(expected.copy(), expected, "float32") == -10
    for place, value in ((0, nan), (1, 0.0), (2, -inf), (2, 3e38), (3, nan), (0, inf)):
        actual = expected.copy()
        actual[place] = value
        assert smallest_t(actual, expected, "float32") is None, (place, value)


@pytest.mark.filterwarnings("error")
def test_a_signalling_nan_is_compared_without_a_word() -> None:
    bits = np.array([0x7F800001, 0], np.uint32)  # what memory that was never written may hold
    assert smallest_t(bits.view(np.float32), np.zeros(2, np.float32), "float32") is None
    assert smallest_t(bits.view(np.float32), bits.view(np.float32), "float32") == LEVELS[0]


def test_integers_and_bools_are_equal_or_not() -> None:
    numbers = np.array([1, 2, 3], np.int64)
    assert smallest_t(numbers, numbers.copy(), "int64") == -10
    assert smallest_t(numbers, numbers + 1, "int64") is None
    assert smallest_t(np.array([True]), np.array([False]), "bool") is None


def test_complex_numbers_follow_their_real_part_type() -> None:
    expected = np.array([1 + 1j], np.complex64)
    assert smallest_t(expected + np.complex64(1e-7), expected, "complex64") == -6
    assert smallest_t(expected.copy(), expected, "complex64") == -10


def test_an_empty_tensor_agrees() -> None:
    empty = np.zeros((0, 3), np.float32)
    assert smallest_t(empty, empty, "float32") == -10
