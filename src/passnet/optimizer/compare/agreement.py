"""Comparison of a backend with eager torch, on fresh and on hostile arguments."""

import copy
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from passnet.judge.precision import DOWNGRADE, DOWNGRADE_RATIO, UNSTABLE, relative_error
from passnet.optimizer.call.built_backend import BuiltBackend
from passnet.optimizer.call.call_check import can_be_bounded, is_dense_in_memory
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.compare.fresh_values import (
    drawn_within,
    fresh_tensors,
    hostile_indices,
    hostile_tensors,
)
from passnet.optimizer.compare.index_bounds import index_bounds

NUM_FRESH = 3
"""Sets of fresh arguments on which a backend is compared, beside the example."""

NUM_EXACT, MAX_EXACT_S = 2, 0.1
"""The first so many sets are compared beside float64, the others beside eager torch alone; so are
all of a net whose call takes longer than this, in seconds."""

MAX_DOUBT_S = 1.0
"""And of a net whose call takes no longer than this the others too, where they would be wrong: what
one net makes of a rounding is another's error."""

LARGE = 1024.0
"""So many times the largest magnitude in the example (or one) is what a backend that is right for
finite arguments alone may be given; that nothing overflows there is looked at."""

CHANGE = 0.25
"""By so much at most weights are changed to see that a backend reads them."""

FOLDED = 4.0
"""How many times the usual bound the error of a way with folded weights may be: a batch norm that
is folded into a convolution rounds its weights once more."""


_ENDS = "it may end the process, where eager torch raises an error"


@dataclass(frozen=True, slots=True)
class Agreement:
    """How near a way comes: the largest relative error of an output, and eager torch's own beside
    float64, None where the net does not run in float64; or why it is wrong. `bound` is the largest
    magnitude of floats in arguments for which it is right; None for any, NaN included.
    `index_bounds` are, for each tensor, the whole numbers between which it is right; empty for any.
    """

    error: float
    eager_error: float | None
    wrong: str | None = None
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()


class EagerComparison:
    """Compares backends with eager torch, each on the same arguments; where these may be
    taken as `finite`, not on such that are not, nor on indices out of range.
    """

    def __init__(self, call: NetCall, finite: bool = False, seed: int = 0) -> None:
        self._call = call
        self._sets: list[list[torch.Tensor]] = []
        self._expected: list[list[torch.Tensor]] = []
        start = time.perf_counter()
        self._keep([tensor.clone() for tensor in call.tensors()])
        self._eager_s = time.perf_counter() - start
        for number in range(NUM_FRESH):
            # sizes and places among whole numbers may fit each other alone
            if not self._keep(fresh_tensors(call, seed + number)):
                self._keep(fresh_tensors(call, seed + number, floats_only=True))
        floats = [each for each in call.tensors() if each.is_floating_point() and each.numel()]
        finite_only = [torch.where(each.isfinite(), each, 0.0).detach() for each in floats]
        self._bound = LARGE * max([1.0, *(float(each.abs().max()) for each in finite_only)])
        self._can_be_bounded = all(map(can_be_bounded, call.tensors()))
        self._hostile = [
            (value, tensors)
            for value, tensors in hostile_tensors(call, seed, self._bound)
            if math.isfinite(value) or not finite
        ]
        self._indices = [] if finite else list(hostile_indices(call, seed))

    def _keep(self, tensors: list[torch.Tensor]) -> bool:
        """Compare on these arguments, if eager torch takes them."""
        expected = self.try_eager(tensors)
        if expected is None:
            return False
        self._sets.append(tensors)
        self._expected.append(expected)
        return True

    @cached_property
    def _expected_hostile(self) -> list[list[torch.Tensor] | None]:
        return [self.try_eager(tensors) for _, tensors in self._hostile]

    @cached_property
    def _expected_of_indices(self) -> list[list[torch.Tensor] | None]:
        return [self.try_eager(tensors) for _, tensors in self._indices]

    @cached_property
    def _exact(self) -> list[list[torch.Tensor]]:
        """The outputs in float64 for the first sets; none where the net does not run in it, or
        takes too long: without oneDNN a convolution in float64 is tens of times as slow.
        """
        return self._in_float64(self._sets[:NUM_EXACT]) if self._eager_s <= MAX_EXACT_S else []

    def _in_float64(self, sets: Sequence[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """The outputs for some sets of a copy of the net in float64; none where it does not run."""
        try:
            net = copy.deepcopy(self._call.net).double()
            return [
                [output.clone() for output in self._call.eager_outputs(leaves, net)]
                for leaves in (
                    self._call.filled([_in_float64(each) for each in tensors]) for tensors in sets
                )
            ]
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return []

    def _compared(
        self,
        built: BuiltBackend,
        tensors: list[torch.Tensor],
        given: list[torch.Tensor],
        expected: Sequence[torch.Tensor],
        exact: Sequence[torch.Tensor] | None,
    ) -> Agreement:
        """How near the outputs of a way for `given` are, which has the values of `tensors`; where
        they would be wrong beside eager torch alone, beside float64 too.
        """
        outputs = built.run(given)
        found = compare_outputs(outputs, expected, exact, built.is_frozen)
        if found.wrong and exact is None and self._eager_s <= MAX_DOUBT_S:
            for exact in self._in_float64([tensors]):
                found = compare_outputs(outputs, expected, exact, built.is_frozen)
        return found

    def repeated(self) -> str | None:
        """Return why eager torch does not return the same twice, None where it does."""
        for tensors, expected in zip(self._sets, self._expected, strict=True):
            again = self.try_eager(tensors)
            wrong = compare_outputs(again or (), expected, None, False).wrong
            if wrong:
                return wrong
        return None

    def agreement(self, built: BuiltBackend) -> Agreement:
        """Return how near the outputs of a backend are."""
        error, eager_error = 0.0, 0.0 if self._exact else None
        for number, (tensors, expected) in enumerate(zip(self._sets, self._expected, strict=True)):
            given = [tensor.clone() for tensor in tensors]
            exact = self._exact[number] if number < len(self._exact) else None
            found = self._compared(built, tensors, list(given), expected, exact)
            error = max(error, found.error)
            if eager_error is not None and found.eager_error is not None:
                eager_error = max(eager_error, found.eager_error)
            wrong = found.wrong
            if not all(map(_same, given, tensors)):
                wrong = "it writes into an argument"
            if wrong:
                return Agreement(error, eager_error, wrong)
        if not built.is_frozen and (wrong := self._stale_weights(built)):
            return Agreement(error, eager_error, wrong)
        if wrong := self._hostile_difference(built, finite=True):
            return Agreement(error, eager_error, wrong)
        bounds: tuple[tuple[int, int] | None, ...] = ()
        can_be_refused = built.is_frozen or built.ends_process
        if wrong := self._index_difference(built):
            bounds = self._index_bounds if can_be_refused else ()
            wrong = self._difference_within(built) if bounds else wrong
            if wrong:
                return Agreement(error, eager_error, wrong)
        wrong = self._hostile_difference(built, finite=False)
        if wrong and not (can_be_refused and self._can_be_bounded):
            return Agreement(error, eager_error, wrong)
        return Agreement(error, eager_error, None, self._bound if wrong else None, bounds)

    def _stale_weights(self, built: BuiltBackend) -> str | None:
        """What is wrong while weights have other values, of a way that reads them at each call."""
        tensors = self._sets[0]
        with _other_values(self._call.weights.values()) as changed:
            if not changed:
                return None
            expected = self.try_eager(tensors)
            if expected is None:
                return None
            wrong = self._compared(built, tensors, list(tensors), expected, None).wrong
        return wrong and f"when its weights are updated, {wrong}"

    def _hostile_difference(self, built: BuiltBackend, finite: bool) -> str | None:
        """Where a way loses or makes values that are not finite, of arguments that are finite or of
        others; None where it does neither. It is not asked where eager torch raises an error.
        """
        for (value, tensors), expected in zip(self._hostile, self._expected_hostile, strict=True):
            if math.isfinite(value) != finite:
                continue
            if expected is None:
                if built.ends_process:
                    return f"with {value:g} in its arguments {_ENDS}"
                continue
            outputs = built.run(list(tensors))
            for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
                if right.is_floating_point() and not torch.equal(
                    output.isfinite(), right.isfinite()
                ):
                    return f"with {value:g} in its arguments output {index} is finite elsewhere"
        return None

    def _index_difference(self, built: BuiltBackend) -> str | None:
        """Where a way returns something for an index of which eager torch raises an error, or the
        other way, or other whole numbers, or may end the process.
        """
        for (value, tensors), expected in zip(
            self._indices, self._expected_of_indices, strict=True
        ):
            if expected is None and built.ends_process:
                return f"with {value} among its whole numbers {_ENDS}"
            try:
                outputs = built.run(list(tensors))
            except Exception:  # noqa: BLE001 (boundary: foreign code may raise anything)
                outputs = None
            if (outputs is None) != (expected is None):
                said = "it fails" if outputs is None else "it does not fail"
                return (
                    f"with {value} among its whole numbers {said}, and eager torch does not agree"
                )
            for index, (output, right) in enumerate(
                zip(outputs or (), expected or (), strict=True)
            ):
                if not right.is_floating_point() and not torch.equal(output, right):
                    return f"with {value} among its whole numbers output {index} has other values"
        return None

    @cached_property
    def _index_bounds(self) -> tuple[tuple[int, int] | None, ...]:
        """Between which whole numbers backends may be used that are wrong for others."""
        return index_bounds(
            self._call,
            lambda tensors: self.try_eager(tensors) is not None,
            widens=self._eager_s <= MAX_EXACT_S,
        )

    def _difference_within(self, built: BuiltBackend) -> str | None:
        """Return what is wrong for whole numbers that are drawn within these bounds."""
        for seed in range(NUM_FRESH):
            tensors = drawn_within(self._call, self._index_bounds, seed)
            expected = self.try_eager(tensors)
            if expected is not None:
                wrong = compare_outputs(built.run(list(tensors)), expected, None, True).wrong
                if wrong:
                    return f"with whole numbers up to their bounds, {wrong}"
        return None

    def _eager(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        outputs = self._call.eager_outputs(self._call.filled(tensors))
        return [output.clone() for output in outputs]

    def try_eager(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Eager torch's outputs, None where it raises an error."""
        try:
            return self._eager(tensors)
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return None


@contextmanager
def _other_values(weights: Iterable[torch.Tensor], seed: int = 0) -> Iterator[bool]:
    """Floats of weights multiplied by numbers near one, for a while; whether there are any."""
    floats = [weight.data for weight in weights if _may_be_changed(weight)]
    before = [weight.clone() for weight in floats]
    generator = torch.Generator().manual_seed(seed)
    try:
        for weight in floats:
            factors = 1 + CHANGE * torch.rand(weight.shape, generator=generator)
            weight.mul_(factors.to(weight.device, weight.dtype))
        yield bool(floats)
    finally:
        for weight, values in zip(floats, before, strict=True):
            weight.copy_(values)


def _may_be_changed(weight: torch.Tensor) -> bool:
    """Return whether a weight holds floats, each in a place of its own."""
    return is_dense_in_memory(weight) and weight.is_floating_point() and bool(weight.numel())


def compare_outputs(
    outputs: Sequence[Any],
    expected: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor] | None,
    is_frozen: bool,
) -> Agreement:
    """How near outputs are to eager torch's: their forms, whole numbers and places that are not
    finite must be the same, and their error beside float64 no sign of a lower precision, by the
    bounds of `judge.precision`. They are compared with eager torch's alone where there is no
    float64, or where eager torch is so far from it that nearly anything would be as near.
    """
    error, eager_error = 0.0, 0.0
    wrong = _form_difference(outputs, expected)
    if wrong:
        return Agreement(error, None, wrong)
    for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
        if not right.is_floating_point():
            if not torch.equal(output, right):
                wrong = f"output {index} has other values"
            continue
        if not torch.equal(output.isfinite(), right.isfinite()):
            wrong = f"output {index} is not finite where eager torch's is, or the other way"
            continue
        dtype = str(right.dtype).removeprefix("torch.")
        usual = 0.0 if exact is None else _error(right, exact[index])
        eager_error = max(eager_error, usual)
        is_alone = exact is None or not usual <= UNSTABLE.get(dtype, math.inf)
        usual = 0.0 if is_alone else usual
        own = _error(output, right if exact is None or is_alone else exact[index])
        error = max(error, own)
        bound = max(DOWNGRADE.get(dtype, 0.0), DOWNGRADE_RATIO * usual)
        if own > bound * (FOLDED if is_frozen else 1.0):
            wrong = f"output {index} is off by {own:.1e}, eager torch by {usual:.1e}"
    return Agreement(error, None if exact is None else eager_error, wrong)


def _form_difference(outputs: Sequence[Any], expected: Sequence[torch.Tensor]) -> str | None:
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs, eager torch has {len(expected)}"
    for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
        if not isinstance(output, torch.Tensor):
            return f"output {index} is a {type(output).__name__}"
        for name in ("shape", "dtype", "device"):
            if getattr(output, name) != getattr(right, name):
                return f"output {index} has {name} {getattr(output, name)}"
    return None


def _in_float64(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor.clone()


def _same(tensor: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(torch.equal(tensor.nan_to_num(), other.nan_to_num()))


def _error(output: torch.Tensor, true: torch.Tensor) -> float:
    return relative_error(
        output.detach().double().cpu().numpy(), true.detach().double().cpu().numpy()
    )
