"""Comparison of a candidate with the reference on every set of inputs, before it is timed.

The smallest level at which all values agree counts, and memory that outputs share. On extreme and
on structured inputs errors like those of eager torch are forgiven.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from passnet.core.records.dtypes import Array
from passnet.errors import GraphError
from passnet.graph.values.inputs import InputKind, InputValue
from passnet.judge.processes.loaded_worker import (
    CallOutcome,
    Float64Result,
    LoadedWorker,
    PreparedGraph,
)
from passnet.judge.protocol.messages import OutputForm
from passnet.judge.score.tolerance import LEVELS
from passnet.judge.settings import StridesName
from passnet.judge.timing.probes import SharedPair, compare_shared, outputs_in, shared
from passnet.judge.timing.roofline import MachineRates, Roofline, roofline_of
from passnet.judge.verdict.compare import (
    Comparison,
    compare_array,
    compare_forms,
    compare_values,
    on_inputs,
    worse,
)
from passnet.judge.verdict.findings import Finding
from passnet.judge.verdict.hard_set import HardSet, hard_set
from passnet.judge.verdict.precision import Accuracy, precision_findings, worst_accuracy

FRESH_SLACK, MOST_FRESH_SLACK = 2.0, 1e-4
"""The forgiven multiple of eager torch's largest error, and its bound, a share of the output."""

KINDS: tuple[InputKind, ...] = ("recorded", "fresh")
"""The kinds of input sets that workers hold, in the order of the calls."""

RECORDED, FRESH = (KINDS.index(kind) for kind in ("recorded", "fresh"))


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The comparison of a candidate, its accuracy on fresh inputs, and its findings."""

    comparison: Comparison
    accuracy: Accuracy | None = None
    findings: tuple[Finding, ...] = ()


class Expected:
    """The reference's results on every set of inputs of a graph.

    `hard` are further sets by name, written in place of the fresh one; those that the reference
    refuses are left out. Raises WorkerFailureError if the reference fails on other inputs,
    GraphError for an output that cannot be compared.
    """

    def __init__(
        self,
        prepared: PreparedGraph,
        reference: LoadedWorker,
        hard: Iterable[tuple[str, Sequence[InputValue]]] = (),
    ) -> None:
        self._prepared = prepared
        self.outcomes = [_outcome(reference, number) for number in range(len(KINDS))]
        for index, form in enumerate(self.outcomes[0].forms):
            if form.kind == "other" and form.dtype != "NoneType":
                raise GraphError(f"output {index} is a {form.dtype}, which cannot be compared")
        self.exact: Float64Result | None = reference.exact(FRESH, is_counted=True)
        sets = [hard_set(name, reference, FRESH, values) for name, values in hard]
        self.hard: list[HardSet] = [each for each in sets if each is not None]

    def fresh_slack(self) -> list[float]:
        """Return the error of each output that is forgiven in timed calls on fresh inputs.

        It is twice eager torch's largest one on such inputs: among thousands of rows one has a sum
        near zero, where a more precise candidate differs from eager torch by more than t = -5
        allows. In half precision t = -5 is coarse enough.
        """
        outcome, slack = self.outcomes[FRESH], [0.0] * len(self.outcomes[FRESH].outputs)
        exact = () if self.exact is None else self.exact.outputs
        if len(exact) != len(slack):
            return slack
        rows = zip(outcome.forms, outcome.outputs, exact, strict=True)
        for index, (form, value, right) in enumerate(rows):
            same = value is not None and right is not None and value.shape == right.shape
            if same and form.dtype in ("float32", "float64"):
                errors, sizes = np.abs(value - right), np.abs(right)
                error, size = (
                    float(np.max(each, initial=0.0, where=np.isfinite(each)))
                    for each in (errors, sizes)
                )
                slack[index] = min(FRESH_SLACK * error, MOST_FRESH_SLACK * size)
        return slack

    def roofline(self, bytes_written: int, rates: MachineRates | None) -> Roofline | None:
        """Return the roofline of a call that writes so many bytes of outputs; None without rates.

        The dtypes are those of its arguments and those that its text names.
        """
        if rates is None:
            return None
        products, elementwise, bytes_read = self.exact.work if self.exact else (0, 0, 0)
        named = {"float32": ".float()", "float16": ".half()", "float64": ".double()"}
        dtypes = {spec.dtype for spec in self._prepared.tensors} | {
            dtype
            for dtype in rates.products
            if dtype in self._prepared.text or named.get(dtype, dtype) in self._prepared.text
        }
        return roofline_of((bytes_read, bytes_written, products, elementwise), dtypes, rates)

    def check(self, loaded: LoadedWorker, strides: StridesName) -> CheckResult:
        """Call a candidate on every set and compare; its failure raises WorkerFailureError."""
        comparison, outcomes = self.compare(loaded, strides)
        if len(outcomes) < len(self.outcomes):
            return CheckResult(comparison)
        exact = None if self.exact is None else self.exact.outputs
        usual, extreme = _accuracy(outcomes[FRESH], self.outcomes[FRESH], exact), None
        for each in self.hard:
            graded, outcome = each.compare(loaded, FRESH, strides)
            comparison = worse(comparison, graded)
            if graded.status != "ok":
                return CheckResult(comparison, usual)
            if each.name == "extreme":
                extreme = _accuracy(outcome, each.outcome, each.exact)
        return CheckResult(comparison, usual, tuple(precision_findings(usual, extreme)))

    def compare(
        self, loaded: LoadedWorker, strides: StridesName
    ) -> tuple[Comparison, dict[int, CallOutcome]]:
        """Call a candidate on the sets that it holds; return the comparison and the outcomes."""
        comparison = Comparison("ok", LEVELS[0])
        outcomes: dict[int, CallOutcome] = {}
        for number in range(len(KINDS)):
            forms = loaded.run(number)
            same = compare_forms(forms, self.outcomes[number].forms, strides)
            if same.status != "ok":
                return worse(comparison, same), outcomes
            outcomes[number] = loaded.outcome(forms, number)
            if outcomes[number].changed:
                loaded.restore(number)
            graded = on_inputs(self._compare(outcomes[number], number), KINDS[number])
            comparison = worse(comparison, graded)
        return comparison, outcomes

    def _compare(self, actual: CallOutcome, number: int) -> Comparison:
        expected = self.outcomes[number]
        comparison = compare_values(actual.forms, expected.forms, actual.outputs, expected.outputs)
        # Arguments that either side changed must end up with the same values.
        for index in sorted({*actual.changed, *expected.changed}):
            layout = self._prepared.layouts[index]
            actual_values = self._after(actual, index, number)
            expected_values = self._after(expected, index, number)
            if index not in expected.changed:
                text = f"argument {index} is left with other values"
                return worse(comparison, Comparison("ok", None, text))
            sides = (actual_values, expected_values, layout.dtype)
            comparison = worse(
                comparison, compare_array(f"argument {index} after the call", *sides)
            )
        return worse(comparison, compare_shared(_shared(actual), _shared(expected)))

    def _after(self, outcome: CallOutcome, index: int, number: int) -> np.ndarray:
        if index in outcome.changed:
            return outcome.changed[index]
        return self._prepared.values(number, index).reshape(self._prepared.layouts[index].shape)


def _accuracy(
    actual: CallOutcome, expected: CallOutcome, exact: Sequence[Array | None] | None
) -> Accuracy | None:
    if exact is None or len(exact) != len(actual.outputs):
        return None
    return worst_accuracy(actual.forms, actual.outputs, expected.outputs, exact)


def _shared(outcome: CallOutcome) -> frozenset[SharedPair]:
    return shared(outcome.outputs_at, outcome.forms, outcome.arguments_at)


def _outcome(loaded: LoadedWorker, number: int) -> CallOutcome:
    outcome = loaded.outcome(loaded.run(number), number)
    if outcome.changed:
        loaded.restore(number)
    return outcome


def num_written(forms: tuple[OutputForm, ...], pairs: frozenset[SharedPair]) -> int:
    """Return the bytes of outputs outside all arguments and other outputs; `pairs` share memory."""
    viewing = outputs_in(pairs, "argument") | outputs_in(pairs, "output")
    return sum(
        form.num_bytes
        for index, form in enumerate(forms)
        if index not in viewing and 0 not in form.stride
    )
