"""Comparison of a candidate's outputs with the reference's: form first, then values."""

from collections.abc import Sequence
from dataclasses import dataclass

from passnet.core.records.dtypes import Array
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.score.status import Status
from passnet.judge.score.tolerance import LEVELS, forgiving, smallest_t
from passnet.judge.settings import StridesName

MAX_GAPS = 8
"""Most multiples of its values' bytes that an output may span, such as a slice of eight parts."""
SMALL_SPAN_BYTES = 2**20
"""A span that is cheap to read, whatever its gaps."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing outputs, with the smallest level at which they agree, if any."""

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
    worst: int = LEVELS[0]
    for index, (form, expected_form, actual_values, expected_values) in enumerate(
        zip(forms, expected_forms, actual, expected, strict=True)
    ):
        if actual_values is None or expected_values is None:
            level = LEVELS[0] if form.number == expected_form.number else None
        else:
            if slack is not None:
                parts = (form.dtype, slack[index], exact[index] if exact else None)
                actual_values = forgiving(actual_values, expected_values, *parts)
            level = smallest_t(actual_values, expected_values, form.dtype)
        if level is None:
            return Comparison("ok", None, f"output {index} agrees at no tolerance")
        worst = max(worst, level)
    return Comparison("ok", worst)


def worse(first: Comparison, second: Comparison) -> Comparison:
    """Return the worse comparison for the candidate, the first of equal ones."""
    return max(
        first,
        second,
        key=lambda comparison: (comparison.status != "ok", comparison.t is None, comparison.t or 0),
    )
