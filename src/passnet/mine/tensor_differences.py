"""How two lists of tensors differ: values, dtypes, shapes, strides, and what shares memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def difference(
    expected: Sequence[Any], results: Sequence[Any], given: Sequence[Any]
) -> tuple[float | None, str]:
    """How what a subgraph returned differs from what its parent had.

    Compared are numbers (NaN equals NaN, -0 equals 0), dtypes, shapes, strides, and which outputs
    share memory with each other and with arguments.

    Args:
        expected: the parent's values.
        results: the subgraph's, as many.
        given: the arguments of both.

    Returns:
        The largest difference in value, None where it is not finite or was not looked at, and the
        first difference of any kind in words, "" where there is none.
    """
    largest = 0.0
    for number, (wanted, made) in enumerate(zip(expected, results, strict=True)):
        what = f"output {number}"
        if not isinstance(wanted, torch.Tensor) or not isinstance(made, torch.Tensor):
            return None, f"{what} is no tensor"
        for name in ("dtype", "shape"):
            if getattr(wanted, name) != getattr(made, name):
                return None, f"{what}: {name} {getattr(made, name)}, not {getattr(wanted, name)}"
        if _strides(wanted) != _strides(made):
            return None, f"{what}: strides {made.stride()}, not {wanted.stride()}"
        error = max_error(wanted, made)
        if error is None:
            return None, f"{what}: other values are NaN or infinite"
        largest = max(largest, error)
    if largest > 0:
        return largest, "other values"
    if _sharing([*given, *expected]) != _sharing([*given, *results]):
        return largest, "other outputs share memory"
    return largest, ""


def _strides(value: torch.Tensor) -> list[int]:
    """The strides that matter: those of axes with more than one place."""
    return [step for step, size in zip(value.stride(), value.shape, strict=True) if size > 1]


def max_error(wanted: torch.Tensor, made: torch.Tensor) -> float | None:
    """The largest absolute difference of two tensors of one dtype and shape; 0 where all are equal,
    NaN to NaN; None where a NaN or an infinity stands against another value.
    """
    if wanted.is_complex():
        wanted, made = (
            torch.view_as_real(wanted.resolve_conj()),
            torch.view_as_real(made.resolve_conj()),
        )
    differs = (wanted != made) & ~(wanted.isnan() & made.isnan())
    if not differs.any():
        return 0.0
    largest = (wanted[differs].double() - made[differs].double()).abs().max()
    return float(largest) if largest.isfinite() else None


def _sharing(values: Sequence[Any]) -> list[int]:
    """For each value the first one that has the same storage."""
    first: dict[int, int] = {}
    found = []
    for number, value in enumerate(values):
        is_stored = isinstance(value, torch.Tensor) and value.layout == torch.strided
        place = value.untyped_storage().data_ptr() if is_stored else 0
        found.append(first.setdefault(place, number) if place else number)
    return found
