"""A set of extreme or structured inputs, the expected results, and the errors forgiven on it.

What is forgiven is a multiple of eager torch's own error: against float64, and of calls on inputs
that differ in their last bits. Values that no arithmetic of the dtype determines are so left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from passnet.core.records.dtypes import Array, from_storage, is_float
from passnet.graph.spec import TensorSpec
from passnet.graph.values.inputs import InputValue
from passnet.judge.processes.loaded_worker import CallOutcome, LoadedWorker
from passnet.judge.processes.worker_process import WorkerFailureError
from passnet.judge.score.tolerance import forgiving, smallest_t
from passnet.judge.settings import StridesName
from passnet.judge.timing.probes import compare_shared, shared
from passnet.judge.verdict.compare import Comparison, compare_forms, compare_values, worse
from passnet.judge.verdict.precision import ROUNDING

SLACK, HALF_SLACK = 32.0, 16.0
"""Multiples of eager torch's error that are forgiven: a plain sum over 4096 float32 numbers is off
by ten times as much as torch's, and single elements by more. In half precision it is mostly that of
rounding the output."""
NUM_NUDGED = 3
"""Calls on nudged inputs: in one of them alone, an error can be small by chance."""
NUDGED_BITS = {"float64": 24, "float32": 4, "float16": 1, "bfloat16": 1}
"""Last bits that differ in a nudged input: about the relative tolerance at t = -5."""
SMOOTHED_FROM = 8
"""Least size of a row of outputs; three quarters of its errors hold for the others."""


@dataclass(frozen=True, slots=True)
class HardSet:
    """Values of all arguments, and results of the reference; `slack` is what is forgiven."""

    name: str
    values: Sequence[InputValue]
    outcome: CallOutcome
    exact: tuple[Array | None, ...] | None
    slack: tuple[Array | None, ...]
    changed_slack: dict[int, Array]

    @property
    def largest_slack(self) -> tuple[float, ...]:
        """Return the largest finite error that is forgiven in each output."""
        return tuple(
            0.0 if slack is None else float(np.max(slack, initial=0.0, where=np.isfinite(slack)))
            for slack in self.slack
        )

    def compare(
        self, loaded: LoadedWorker, input_set: int, strides: StridesName
    ) -> tuple[Comparison, CallOutcome]:
        """Call a candidate on the set, in place of another one, and compare."""
        loaded.write(input_set, self.values)
        forms = loaded.run(input_set)
        same = compare_forms(forms, self.outcome.forms, strides)
        actual = loaded.outcome(forms, input_set)
        loaded.restore(input_set)
        if same.status != "ok":
            return same, actual
        exact = self.exact or [None] * len(forms)
        outputs = [
            value
            if value is None or right is None or slack is None
            else forgiving(value, right, form.dtype, slack, true)
            for form, value, right, slack, true in zip(
                forms, actual.outputs, self.outcome.outputs, self.slack, exact, strict=True
            )
        ]
        comparison = compare_values(forms, self.outcome.forms, outputs, self.outcome.outputs)
        for index in sorted({*actual.changed, *self.outcome.changed}):
            layout = loaded.prepared.layouts[index]
            after = actual.changed.get(index, np.reshape(self.values[index], layout.shape))
            right = self.outcome.changed.get(index)
            level = None
            if right is not None:
                slack = self.changed_slack[index]
                near = forgiving(after, right, layout.dtype, slack)
                level = smallest_t(near, right, layout.dtype)
            text = None if level is not None else f"argument {index} is left with other values"
            comparison = worse(comparison, Comparison("ok", level, text))
        if comparison.t is None:
            text = f"{comparison.text} on {self.name} inputs"
            comparison = Comparison("ok", None, text)
        pairs = [
            shared(seen.outputs_at, seen.forms, seen.arguments_at)
            for seen in (actual, self.outcome)
        ]
        return worse(comparison, compare_shared(*pairs)), actual


def hard_set(
    name: str, reference: LoadedWorker, input_set: int, values: Sequence[InputValue]
) -> HardSet | None:
    """Return a set with the reference's results, or None if the reference refuses it.

    The values are written in place of another set. A reference that dies raises
    WorkerFailureError.
    """

    def called(inputs: Sequence[InputValue]) -> CallOutcome:
        reference.write(input_set, inputs)
        return reference.outcome(reference.run(input_set), input_set)

    specs = reference.prepared.tensors
    try:
        outcome = called(values)
        reference.write(input_set, values)
        result = reference.exact(input_set)
        exact = None if result is None else result.outputs
        others = [
            called([_nudged(*each, salt) for each in zip(values, specs, strict=True)])
            for salt in range(NUM_NUDGED)
        ]
    except WorkerFailureError as failure:
        if failure.status in ("crash", "timeout"):
            raise
        return None
    finally:
        reference.restore(input_set)
    if exact is not None and [_shape(value) for value in exact] != [
        _shape(value) for value in outcome.outputs
    ]:
        exact = None
    truths = exact or outcome.outputs
    slack = [
        None
        if right is None
        else _slack(form.dtype, right, truth, [other.outputs[index] for other in others])
        for index, (form, right, truth) in enumerate(
            zip(outcome.forms, outcome.outputs, truths, strict=True)
        )
    ]
    changed_slack = {
        index: _slack(
            specs[index].dtype, right, None, [other.changed.get(index) for other in others]
        )
        for index, right in outcome.changed.items()
    }
    return HardSet(name, values, outcome, exact, tuple(slack), changed_slack)


def _shape(value: Array | None) -> tuple[int, ...] | None:
    return None if value is None else value.shape


def _slack(dtype: str, right: Array, exact: Array | None, others: Sequence[Array | None]) -> Array:
    """Return the error that is forgiven in each element of an output."""
    wide = np.complex128 if dtype.startswith("complex") else np.float64
    is_half = dtype in ("float16", "bfloat16")
    factor = HALF_SLACK if is_half else SLACK
    values = from_storage(right, dtype).astype(wide)
    if not is_float(dtype) and wide is np.float64:
        exact = None
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.abs(values) * (0.0 if is_half else ROUNDING.get(dtype, 0.0))
        if exact is not None and exact.shape == right.shape:
            np.maximum(error, np.abs(values - exact), out=error)
        truth = values if exact is None else exact
        for other in others:
            if other is None or other.shape != right.shape:
                return np.full(right.shape, np.inf, np.float32)
            np.maximum(error, np.abs(from_storage(other, dtype).astype(wide) - truth), out=error)
        if not is_float(dtype) and wide is np.float64:
            return np.where(error == 0, np.float32(0), np.float32(np.inf))
        error[~np.isfinite(error)] = np.inf
        size = right.shape[-1] if right.ndim else 1
        if size >= SMOOTHED_FROM:
            place = 3 * size // 4
            error = np.maximum(error, np.partition(error, place, -1)[..., place : place + 1])
        return (factor * error).astype(np.float32)


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
