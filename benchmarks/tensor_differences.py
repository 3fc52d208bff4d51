"""How two lists of tensors differ: values, dtypes, shapes, strides, and what shares memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def difference(
    expected: Sequence[Any], actual: Sequence[Any], arguments: Sequence[Any]
) -> tuple[float | None, str]:
    """How what a subgraph returned differs from what its parent had.

    Compared are numbers (NaN equals NaN, -0 equals 0), dtypes, shapes, strides, and which outputs
    share memory with each other and with arguments.

    Args:
        expected: the parent's values.
        actual: the subgraph's, as many.
        arguments: of both.

    Returns:
        The largest difference in value, None where it is not finite or was not looked at, and the
        first difference of any kind in words, "" where there is none.
    """
    largest = 0.0
    for number, (first, second) in enumerate(zip(expected, actual, strict=True)):
        output = f"output {number}"
        if not isinstance(first, torch.Tensor) or not isinstance(second, torch.Tensor):
            return None, f"{output} is no tensor"
        for name in ("dtype", "shape"):
            if getattr(first, name) != getattr(second, name):
                text = f"{output}: {name} {getattr(second, name)}, not {getattr(first, name)}"
                return None, text
        if _strides(first) != _strides(second):
            return None, f"{output}: strides {second.stride()}, not {first.stride()}"
        error = max_error(first, second)
        if error is None:
            return None, f"{output}: other values are NaN or infinite"
        largest = max(largest, error)
    if largest > 0:
        return largest, "other values"
    if _sharing([*arguments, *expected]) != _sharing([*arguments, *actual]):
        return largest, "other outputs share memory"
    return largest, ""


def _strides(value: torch.Tensor) -> list[int]:
    """The strides that matter: those of axes with more than one index."""
    return [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1]


def max_error(first: torch.Tensor, second: torch.Tensor) -> float | None:
    """The largest absolute difference of two tensors of one dtype and shape; 0 where all are equal,
    NaN to NaN; None where a NaN or an infinity stands against another value.
    """
    if first.is_complex():
        first = torch.view_as_real(first.resolve_conj())
        second = torch.view_as_real(second.resolve_conj())
    differs = (first != second) & ~(first.isnan() & second.isnan())
    if not differs.any():
        return 0.0
    largest = (first[differs].double() - second[differs].double()).abs().max()
    return float(largest) if largest.isfinite() else None


def _sharing(values: Sequence[Any]) -> list[int]:
    """For each value the first one that has the same storage."""
    first: dict[int, int] = {}
    groups = []
    for number, value in enumerate(values):
        is_stored = isinstance(value, torch.Tensor) and value.layout == torch.strided
        address = value.untyped_storage().data_ptr() if is_stored else 0
        groups.append(first.setdefault(address, number) if address else number)
    return groups
