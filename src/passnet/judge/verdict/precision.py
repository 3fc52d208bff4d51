"""The accuracy of outputs against float64, relative to eager torch's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passnet.core.records.dtypes import Array, from_storage, is_float
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.verdict.findings import Finding, finding

DOWNGRADE = {"float64": 2.0**-26, "float32": 2.0**-14, "float16": 2.0**-6, "bfloat16": 2.0**-5}
"""Relative error of an output computed in the next lower precision: half a unit of float32 for
float64, an eighth of a unit of float16 for float32, and so on."""
DOWNGRADE_RATIO = 16.0
"""Least multiple of eager torch's own error for a downgrade. A sum in plain order over 4096 float32
elements is off by about ten times as much as torch's."""
UNSTABLE = {"float64": 2.0**-20, "float32": 2.0**-9, "float16": 2.0**-4, "bfloat16": 2.0**-3}
"""Relative error on extreme inputs from which the mathematics counts as unstable."""

UNSTABLE_RATIO = 64.0

ROUNDING = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half a unit of rounding."""


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The relative error (root of the mean square) of an output, and that of eager torch."""

    output: int
    dtype: str
    error: float
    eager_error: float

    @property
    def ratio(self) -> float:
        """Return the error as a multiple of eager torch's, at least of one unit of rounding."""
        return self.error / max(self.eager_error, ROUNDING[self.dtype])


def worst_accuracy(
    forms: Sequence[OutputForm],
    outputs: Sequence[Array | None],
    eager: Sequence[Array | None],
    exact: Sequence[Array | None],
) -> Accuracy | None:
    """Return the accuracy of the output with the largest relative error, None without floats.

    The forms agree; outputs and eager's are as storage, the exact ones in float64.
    """
    accuracies = [
        Accuracy(
            index,
            form.dtype,
            relative_error(from_storage(actual, form.dtype), true),
            relative_error(from_storage(eager_output, form.dtype), true),
        )
        for index, (form, actual, eager_output, true) in enumerate(
            zip(forms, outputs, eager, exact, strict=True)
        )
        if actual is not None
        and eager_output is not None
        and true is not None
        and is_float(form.dtype)
        and actual.shape == true.shape
    ]
    return max(accuracies, key=lambda accuracy: accuracy.ratio, default=None)


def relative_error(actual: Array, exact: Array) -> float:
    """Return the root mean square of the error over that of the exact values.

    Elements that are not finite in either are left out.

    Examples:
        >>> round(relative_error(np.array([1.1, 2.0]), np.array([1.0, 2.0])), 4)
        0.0447
    """
    with np.errstate(invalid="ignore", over="ignore"):  # signalling NaN, too
        actual, exact = actual.astype(np.float64), exact.astype(np.float64)
        wrong = actual - exact
        finite = np.isfinite(wrong)
        wrong, right = wrong[finite], exact[finite]
        scale = float(np.sqrt(np.mean(right**2))) if right.size else 0.0
        error = float(np.sqrt(np.mean(wrong**2))) if wrong.size else 0.0
    return error / scale if scale else error


def precision_findings(usual: Accuracy | None, extreme: Accuracy | None) -> list[Finding]:
    """Return the findings on the accuracy on fresh and on extreme inputs."""
    findings = []
    for name, accuracy, limits, least in (
        ("precision_downgrade", usual, DOWNGRADE, DOWNGRADE_RATIO),
        ("unstable_maths", extreme, UNSTABLE, UNSTABLE_RATIO),
    ):
        if accuracy and accuracy.error > limits[accuracy.dtype] and accuracy.ratio > least:
            text = (
                f"output {accuracy.output} is off by {accuracy.error:.1e} of itself, eager torch "
                f"by {accuracy.eager_error:.1e} (both against float64)"
            )
            findings.append(finding(name, text))
    return findings
