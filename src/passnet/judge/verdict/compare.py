"""Comparison of a candidate's outputs with the reference's: form first, then values."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from passnet.core.records.dtypes import Array, from_storage
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.score.status import Status
from passnet.judge.score.tolerance import (
    CORRECT_AT,
    LEVELS,
    forgiving,
    smallest_t,
    worst_element,
)
from passnet.judge.settings import StridesName

MAX_GAPS = 8
"""Most multiples of its values' bytes that an output may span, such as a slice of eight parts."""
SMALL_SPAN_BYTES = 2**20
"""A span that is cheap to read, whatever its gaps."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing outputs, with the smallest level at which they agree, if any.

    The text says what is wrong, unless they agree at t = -5.
    """

    status: Status
    t: int | None
    text: str | None = None


def compare_forms(
    actual: Sequence[OutputForm], expected: Sequence[OutputForm], strides: StridesName = "same"
) -> Comparison:
    """Compare the number, types, shapes, dtypes and memory order of outputs with the reference's.

    With strides "any" the memory order is free, as in the published benchmark. It is part of a
    shape's contract: an op after the graph may view the tensor, and a compiler bakes its strides
    in. Sizes of 1 and expanded dimensions have no order. Gaps may differ up to `MAX_GAPS`.
    """
    if len(actual) != len(expected):
        return Comparison(
            "wrong_shape", None, f"{len(actual)} outputs, the reference has {len(expected)}"
        )
    for index, (actual_form, expected_form) in enumerate(zip(actual, expected, strict=True)):
        verdict = _compare_form(actual_form, expected_form, f"output {index}", strides)
        if verdict is not None:
            return verdict
    return Comparison("ok", LEVELS[0])


def _compare_form(
    actual: OutputForm, expected: OutputForm, name: str, strides: StridesName
) -> Comparison | None:
    if actual.kind != expected.kind:
        text = f"{name} is a {actual.dtype or actual.kind}, the reference's a {expected.dtype}"
        return Comparison("wrong_dtype", None, text)
    if actual.dtype != expected.dtype:
        text = f"{name} has dtype {actual.dtype}, the reference's {expected.dtype}"
        return Comparison("wrong_dtype", None, text)
    if actual.device != expected.device:
        text = f"{name} lies on {actual.device}, the reference's on {expected.device}"
        return Comparison("wrong_dtype", None, text)
    if actual.shape != expected.shape:
        text = f"{name} has shape {list(actual.shape)}, the reference's {list(expected.shape)}"
        return Comparison("wrong_shape", None, text)
    if actual.span_bytes > max(MAX_GAPS * actual.num_bytes, expected.span_bytes, SMALL_SPAN_BYTES):
        text = (
            f"{name} spans {actual.span_bytes} bytes for {actual.num_bytes} bytes of values: "
            "return it without gaps"
        )
        return Comparison("wrong_shape", None, text)
    if actual.kind == "tensor" and actual.span_bytes < min(actual.num_bytes, expected.span_bytes):
        text = (
            f"{name} has {actual.num_bytes} bytes of values in {actual.span_bytes} bytes: return "
            "values that do not overlap"
        )
        return Comparison("wrong_shape", None, text)
    # In any order, but dense where the reference is.
    order = expected.stride if strides == "same" or 0 in actual.stride else actual.stride
    if actual.kind == "tensor" and not same_order(actual.shape, actual.stride, order):
        text = (
            f"{name} has strides {list(actual.stride)}, the reference's {list(expected.stride)}: "
            "allocate it in the order of the reference, or permute it back"
        )
        return Comparison("wrong_shape", None, text)
    return None


def same_order(shape: Sequence[int], first: Sequence[int], second: Sequence[int]) -> bool:
    """Return whether two tensors of one shape have the same order of dimensions in memory.

    Examples:
        >>> same_order((2, 3, 4), (12, 4, 1), (24, 8, 2))  # one is a slice of a larger tensor
        True
        >>> same_order((2, 3, 4), (12, 4, 1), (12, 1, 3))
        False
        >>> same_order((2, 1, 4), (4, 4, 1), (4, 1, 1))  # a size of 1 has no order
        True
    """
    if 0 in shape:
        return True
    dims = [dim for dim, size in enumerate(shape) if size > 1 and second[dim] != 0]
    if any(first[dim] == 0 for dim in dims):
        return False
    return sorted(dims, key=lambda dim: -first[dim]) == sorted(dims, key=lambda dim: -second[dim])


def compare_values(
    forms: Sequence[OutputForm],
    expected_forms: Sequence[OutputForm],
    actual: Sequence[Array | None],
    expected: Sequence[Array | None],
    slack: Sequence[Array | float] | None = None,
    exact: Sequence[Array | None] | None = None,
) -> Comparison:
    """Return the smallest level at which all values agree; forms must have compared as ok.

    Errors within the `slack` of an output are forgiven, see `tolerance.forgiving`.
    """
    comparison = Comparison("ok", LEVELS[0])
    for index, (form, expected_form, actual_values, expected_values) in enumerate(
        zip(forms, expected_forms, actual, expected, strict=True)
    ):
        if actual_values is None or expected_values is None:
            if form.number != expected_form.number:
                return Comparison("ok", None, f"output {index} is {form.number}, and wrong")
            continue
        if slack is not None:
            parts = (form.dtype, slack[index], exact[index] if exact else None)
            actual_values = forgiving(actual_values, expected_values, *parts)
        sides = (actual_values, expected_values, form.dtype)
        comparison = worse(comparison, compare_array(f"output {index}", *sides))
        if comparison.t is None:
            break
    return comparison


def compare_array(
    name: str,
    actual: Array,
    expected: Array,
    dtype: str,
    index_of: Callable[[int], Sequence[int]] | None = None,
) -> Comparison:
    """Return the smallest level at which two arrays agree; the text names the worst element.

    `index_of` gives the index of an element by its place in the arrays, if that is another one. The
    text has the candidate's value but not the expected one. Recorded and fresh inputs are the same
    at the next evaluation, and a text goes to authors and into records, which candidate code may
    read; so it says by how much the value is off, in two digits.
    """
    level = smallest_t(actual, expected, dtype)
    if level is not None and level <= CORRECT_AT:
        return Comparison("ok", level)
    place, error = worst_element(actual, expected, dtype)
    index = index_of(place) if index_of else np.unravel_index(place, expected.shape)
    value, wanted = (
        from_storage(side.reshape(-1)[place : place + 1], dtype)[0].item()
        for side in (actual, expected)
    )
    if np.isfinite(error):
        way = (
            "off" if isinstance(value, complex) else "too large" if value > wanted else "too small"
        )
        text = f"{value:.6g}, {way} by {error:.2g} times the tolerance at t = {CORRECT_AT}"
    elif np.isfinite(value) and not np.isfinite(wanted):
        text = f"{value:.6g}, where the reference is not finite"
    else:
        text = f"{value}, which the reference is not"
    where = f" at {[int(number) for number in index]}" if expected.ndim else ""
    return Comparison("ok", level, f"{name} is wrong{where}: {text}")


def on_inputs(comparison: Comparison, kind: str) -> Comparison:
    """Return a comparison whose text, if any, names the kind of the inputs."""
    text = comparison.text
    return comparison if text is None else replace(comparison, text=f"{text}, on {kind} inputs")


def worse(first: Comparison, second: Comparison) -> Comparison:
    """Return the worse comparison for the candidate, the first of equal ones."""
    return max(
        first,
        second,
        key=lambda comparison: (comparison.status != "ok", comparison.t is None, comparison.t or 0),
    )
