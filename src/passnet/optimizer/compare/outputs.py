"""Outputs of a backend compared with eager torch's, and with exact ones in float64."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from passnet.judge.verdict.precision import (
    DOWNGRADE,
    DOWNGRADE_RATIO,
    UNSTABLE,
    relative_error,
)
from passnet.optimizer.call.values import comparable
from passnet.optimizer.compare.fresh_values import NumberBounds

LARGEST_RATIO = 8.0
"""The multiple of the largest error of eager torch's elements that is allowed besides."""

FOLDED = 4.0
"""The factor on the error bound for folded weights, which round once more."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest relative errors of a backend, and why it is wrong.

    `eager_error` is eager torch's against float64, None where the net does not run in it. `bound`,
    `index_bounds` and `filled_rows` are as in `BuiltBackend`.
    """

    error: float
    eager_error: float | None
    wrong: str | None = None
    bound: float | None = None
    index_bounds: NumberBounds = ()
    filled_rows: tuple[bool, ...] = ()


def compare_outputs(
    outputs: Sequence[Any],
    expected: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor] | None,
    is_frozen: bool,
    allowed: float | None = None,
) -> Agreement:
    """Compare outputs with eager torch's, and with `exact` ones in float64.

    Shapes, dtypes, whole numbers and non-finite elements must be the same. By the bounds of
    `judge.precision`, the error against float64 must be no sign of a lower precision. Without
    float64, or where eager torch is too far from it, its own outputs are the reference. With
    `allowed`, a relative error up to that is right, and so is a share of whole numbers.
    """
    error, eager_error = 0.0, 0.0
    wrong = _shape_difference(outputs, expected)
    if wrong:
        return Agreement(error, None, wrong)
    for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
        is_float = right.is_floating_point()
        output, right = comparable(output), comparable(right)  # noqa: PLW2901
        if not is_float:
            others = _share_of_others(output, right)
            error = error if allowed is None else max(error, others)
            if others > (allowed or 0.0):
                wrong = f"output {index} has other values"
            continue
        if not torch.equal(output.isinf(), right.isinf()) or not (
            torch.equal(output.isnan(), right.isnan()) and _same_signs(output, right)
        ):
            wrong = f"output {index} is not finite where eager torch's is, or the other way"
            continue
        dtype = str(right.dtype).removeprefix("torch.")
        usual = 0.0 if exact is None else _error(right, exact[index])
        eager_error = max(eager_error, usual)
        is_alone = exact is None or not usual <= UNSTABLE.get(dtype, math.inf)
        true = right if exact is None or is_alone else exact[index]
        usual = 0.0 if is_alone else usual
        own = _error(output, true)
        error = max(error, own)
        if allowed is not None:
            if own > allowed:
                wrong = f"output {index} is off by {own:.1e}, and {allowed:.1e} is allowed"
            continue
        least = DOWNGRADE.get(dtype, 0.0)
        if own > max(least, DOWNGRADE_RATIO * usual) * (FOLDED if is_frozen else 1.0):
            wrong = f"output {index} is off by {own:.1e}, eager torch by {usual:.1e}"
            continue
        own, usual = _largest_error(output, true), _largest_error(right, true)
        if own > least * (FOLDED if is_frozen and is_alone else 1.0) + LARGEST_RATIO * usual:
            of = f"an element of output {index} is off by {own:.1e} of the largest"
            wrong = f"{of}, eager torch's by {usual:.1e}"
    return Agreement(error, None if exact is None else eager_error, wrong)


def without_noise(
    outputs: Sequence[Any], right: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]
) -> Sequence[Any]:
    """Return outputs, and eager torch's own where it is far from float64 itself: what it makes of
    such arguments is noise, and a difference says nothing.
    """
    if _shape_difference(outputs, right):
        return outputs
    trios = zip(outputs, right, exact, strict=True)
    return [own if _is_noise(own, true) else output for output, own, true in trios]


def _is_noise(output: torch.Tensor, true: torch.Tensor) -> bool:
    limit = UNSTABLE.get(str(output.dtype).removeprefix("torch."))
    if limit and output.shape == true.shape and _error(output, true) > limit:
        return True
    if output.is_floating_point():
        return False
    return _share_of_others(comparable(output), comparable(true.to(output.dtype))) > 0


def _share_of_others(output: torch.Tensor, right: torch.Tensor) -> float:
    """Return the share of numbers that are others, where NaN is NaN."""
    if torch.equal(output, right):
        return 0.0
    are_others = (output != right) & ~((output != output) & (right != right))
    return float(are_others.double().mean())


def _same_signs(output: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether infinite elements are the same."""
    infinite = right.isinf()
    return bool((output[infinite] == right[infinite]).all())


def _shape_difference(outputs: Sequence[Any], expected: Sequence[torch.Tensor]) -> str | None:
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, eager torch has {len(expected)}"
    for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
        if not isinstance(output, torch.Tensor):
            return f"output {index} is a {type(output).__name__}"
        for name in ("shape", "dtype", "device"):
            if getattr(output, name) != getattr(right, name):
                return f"output {index} has {name} {getattr(output, name)}"
    return None


def _largest_error(output: torch.Tensor, true: torch.Tensor) -> float:
    """Return the largest error of an element over the largest element, both finite."""
    output, true = output.detach().double(), true.detach().double()
    finite = output.isfinite() & true.isfinite()
    if not bool(finite.any()):
        return 0.0
    scale = float(true[finite].abs().max()) or 1.0
    return float((output - true)[finite].abs().max()) / scale


def _error(output: torch.Tensor, true: torch.Tensor) -> float:
    return relative_error(
        output.detach().double().cpu().numpy(), true.detach().double().cpu().numpy()
    )
