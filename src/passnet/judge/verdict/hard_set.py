"""A set of extreme or structured inputs, the expected results, and the errors forgiven on it.

What is forgiven is a multiple of eager torch's own error: against float64, and of calls on inputs
that differ in their last bits. Values that no arithmetic of the dtype determines are so left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passnet.core.records.dtypes import Array, from_storage
from passnet.graph.spec import TensorSpec
from passnet.graph.values.inputs import InputValue
from passnet.judge.processes.loaded_worker import CallOutcome, LoadedWorker
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.score.tolerance import forgiving
from passnet.judge.settings import StridesName
from passnet.judge.timing.probes import compare_shared, shared
from passnet.judge.verdict.compare import (
    Comparison,
    compare_array,
    compare_forms,
    compare_values,
    on_inputs,
    worse,
)
from passnet.judge.verdict.precision import ROUNDING

SLACK, HALF_SLACK = 32.0, 16.0
"""Multiples of eager torch's error that are forgiven: a plain sum over 4096 float32 numbers is off
by ten times as much as torch's, and single elements by more. In half precision it is mostly that of
rounding the output."""
TIMED_SLACK = 4.0
"""Multiple of that in timed calls, whose values differ from those of the set."""
NUM_NUDGED = 3
"""Calls on nudged inputs: in one of them alone, an error can be small by chance."""
NUDGED_BITS = {"float64": 24, "float32": 4, "float16": 1, "bfloat16": 1}
"""Last bits that differ in a nudged input: about the relative tolerance at t = -5."""
SMOOTHED_FROM = 8
"""Least size of a row of outputs; three quarters of its errors hold for the others."""


@dataclass(frozen=True, slots=True)
class HardSet:
    """Values of all arguments, and results of the reference; `slack` is what is forgiven.

    The slack of each output is followed by that of each argument that the reference writes.
    """

    name: str
    values: Sequence[InputValue]
    outcome: CallOutcome
    exact: tuple[Array | None, ...] | None
    slack: list[Array | float]

    @property
    def largest_slack(self) -> list[float]:
        """Return the largest finite error that is forgiven in each output of a timed call."""
        return [
            TIMED_SLACK * float(np.max(slack, initial=0.0, where=np.isfinite(slack)))
            for slack in self.slack[: len(self.outcome.outputs)]
        ]

    def compare(
        self, loaded: LoadedWorker, input_set: int, strides: StridesName
    ) -> tuple[Comparison, CallOutcome]:
        """Call a candidate on the set, in place of another one, and compare."""
        actual = _called(loaded, input_set, self.values)
        loaded.restore(input_set)
        right = self.outcome
        comparison = compare_forms(actual.forms, right.forms, strides)
        if comparison.status != "ok":
            return comparison, actual
        sides = (actual.forms, right.forms, actual.outputs, right.outputs)
        comparison = compare_values(*sides, self.slack, self.exact)
        stray = {*actual.changed} ^ {*right.changed}
        written = [] if stray else sorted(right.changed)
        for index, slack in zip(written, self.slack[len(right.outputs) :], strict=False):
            dtype, after = loaded.prepared.layouts[index].dtype, right.changed[index]
            values = forgiving(actual.changed[index], after, dtype, slack)
            graded = compare_array(f"argument {index} after the call", values, after, dtype)
            comparison = worse(comparison, graded)
        if stray:
            text = f"argument {min(stray)} is left with other values"
            comparison = Comparison("ok", None, text)
        comparison = on_inputs(comparison, self.name)
        pairs = (shared(side.outputs_at, side.forms, side.arguments_at) for side in (actual, right))
        return worse(comparison, compare_shared(*pairs)), actual


def hard_set(
    name: str, reference: LoadedWorker, input_set: int, values: Sequence[InputValue]
) -> HardSet | None:
    """Return a set with the reference's results, or None if the reference refuses it.

    The values are written in place of another set. A reference that dies raises
    WorkerFailureError.
    """
    specs = reference.prepared.tensors
    try:
        outcome = _called(reference, input_set, values)
        reference.write(input_set, values)
        result = reference.exact(input_set)
        nudged_outcomes = []
        for salt in range(NUM_NUDGED):
            nudged = [_nudged(*each, salt) for each in zip(values, specs, strict=True)]
            nudged_outcomes.append(_called(reference, input_set, nudged))
    except WorkerFailureError as failure:
        if failure.status in ("crash", "timeout"):
            raise
        return None
    finally:
        reference.restore(input_set)
    shapes = [None if value is None else value.shape for value in outcome.outputs]
    exact = None
    if result and shapes == [None if value is None else value.shape for value in result.outputs]:
        exact = result.outputs
    slack = []
    for index, (form, right) in enumerate(zip(outcome.forms, outcome.outputs, strict=True)):
        nudged_values = [nudged_outcome.outputs[index] for nudged_outcome in nudged_outcomes]
        slack.append(_slack(form.dtype, right, exact[index] if exact else None, nudged_values))
    for index, right in sorted(outcome.changed.items()):
        nudged_values = [nudged_outcome.changed.get(index) for nudged_outcome in nudged_outcomes]
        slack.append(_slack(specs[index].dtype, right, None, nudged_values))
    return HardSet(name, values, outcome, exact, slack)


def _called(worker: LoadedWorker, input_set: int, values: Sequence[InputValue]) -> CallOutcome:
    worker.write(input_set, values)
    return worker.outcome(worker.run(input_set), input_set)


def _slack(
    dtype: str, right: Array | None, exact: Array | None, nudged_values: Sequence[Array | None]
) -> Array | float:
    """Return the error that is forgiven in each element of an output."""
    if right is None:
        return 0.0
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    is_half, is_whole = dtype in ("float16", "bfloat16"), np.dtype(right.dtype).kind in "biu"
    is_whole = is_whole and dtype != "bfloat16"
    values = from_storage(right, dtype).astype(wide)
    truth = values if exact is None or is_whole else exact
    with np.errstate(invalid="ignore", over="ignore"):
        least = 0.0 if is_half else ROUNDING.get(dtype, 0.0)
        error = np.atleast_1d(np.maximum(np.abs(values) * least, np.abs(values - truth)))
        for nudged in nudged_values:
            if nudged is None or nudged.shape != right.shape:
                return np.inf
            error = np.maximum(error, np.abs(from_storage(nudged, dtype).astype(wide) - truth))
        error[~np.isfinite(error) | (is_whole & (error > 0))] = np.inf
        size = right.shape[-1] if right.ndim else 1
        if size >= SMOOTHED_FROM and not is_whole:
            upper = 3 * size // 4
            error = np.maximum(error, np.partition(error, upper, -1)[..., upper : upper + 1])
        return ((HALF_SLACK if is_half else SLACK) * error).astype(np.float32)


def _nudged(value: InputValue, spec: TensorSpec, salt: int) -> InputValue:
    """Return floats with other last bits; equal numbers stay equal, and zeros and infinities stay.

    A single number stays too.
    """
    dtype = spec.dtype
    if isinstance(value, int) or dtype not in NUDGED_BITS or value.size < 2:
        return value
    bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
    word, width = bits.dtype.type, 8 * bits.itemsize
    odd = word((0x9E3779B97F4A7C15 + 2 * salt) % 2**width)
    nudged = bits ^ (bits * odd >> word(width - NUDGED_BITS[dtype]))
    numbers = from_storage(value, dtype)
    return np.where((numbers == 0) | ~np.isfinite(numbers), value, nudged.view(value.dtype))
