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

from passnet.judge.verdict.precision import (
    DOWNGRADE,
    DOWNGRADE_RATIO,
    UNSTABLE,
    relative_error,
)
from passnet.optimizer.call.call_check import can_be_bounded, is_dense_in_memory
from passnet.optimizer.call.net_call import BuiltBackend, NetCall
from passnet.optimizer.compare import fresh_values

NUM_FRESH = 3
"""Sets of fresh arguments besides the example."""

NUM_EXACT, MAX_EXACT_S = 2, 0.1
"""Sets that are compared with float64 too, if a call of the net takes no longer than this."""

MAX_DOUBT_S = 1.0
"""If a call takes no longer than this, a set that seems wrong is compared with float64 too."""

LARGE = 1024.0
"""Backends that are wrong for non-finite values are bounded by this multiple of the example's."""

CHANGE = 0.25
"""The largest relative change of weights in the test that a backend reads them."""

FOLDED = 4.0
"""The factor on the error bound for folded weights, which round once more."""

_ENDS = "it may end the process, where eager torch raises an error"


@dataclass(frozen=True, slots=True)
class Agreement:
    """The largest relative errors of a backend, and why it is wrong.

    `eager_error` is eager torch's against float64, None where the net does not run in it. `bound`
    and `index_bounds` are as in `BuiltBackend`.
    """

    error: float
    eager_error: float | None
    wrong: str | None = None
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()


class EagerComparison:
    """Compares backends with eager torch, each on the same arguments.

    With `finite`, arguments are neither NaN nor infinite, and indices not out of range.
    """

    def __init__(
        self, call: NetCall, finite: bool = False, seed: int = 0, max_exact_s: float = MAX_EXACT_S
    ) -> None:
        self._call, self._finite, self._seed = call, finite, seed
        self._sets: list[list[torch.Tensor]] = []
        self._expected: list[list[torch.Tensor]] = []
        start = time.perf_counter()
        self._add([tensor.clone() for tensor in call.tensors()])
        self._eager_s = time.perf_counter() - start
        self._is_quick = self._eager_s <= max_exact_s
        for number in range(seed, seed + NUM_FRESH):
            # sizes and places among whole numbers may fit each other alone
            if not self._add(fresh_values.fresh_tensors(call, number)):
                self._add(fresh_values.fresh_tensors(call, number, floats_only=True))
        floats = [x for x in call.tensors() if x.is_floating_point() and x.numel()]
        finite_only = [torch.where(x.isfinite(), x, 0.0).detach() for x in floats]
        self._bound = LARGE * max([1.0, *(float(x.abs().max()) for x in finite_only)])
        self._can_be_bounded = all(map(can_be_bounded, call.tensors()))

    def _add(self, tensors: list[torch.Tensor]) -> bool:
        """Compare on these arguments, if eager torch takes them."""
        expected = self.try_eager(tensors)
        if expected is None:
            return False
        self._sets.append(tensors)
        self._expected.append(expected)
        return True

    @cached_property
    def _hostile(self) -> list[tuple[float, list[torch.Tensor], list[torch.Tensor] | None]]:
        """Hostile values, arguments that hold them, and eager torch's outputs."""
        hostile = fresh_values.hostile_tensors(self._call, self._seed, self._bound)
        return [
            (value, tensors, self.try_eager(tensors))
            for value, tensors in hostile
            if math.isfinite(value) or not self._finite
        ]

    @cached_property
    def _indices(self) -> list[tuple[int, list[torch.Tensor], list[torch.Tensor] | None]]:
        """Hostile indices, arguments that hold them, and eager torch's outputs."""
        hostile = fresh_values.hostile_indices(self._call, self._seed)
        cases = [] if self._finite else hostile
        return [(value, tensors, self.try_eager(tensors)) for value, tensors in cases]

    @cached_property
    def _exact(self) -> list[list[torch.Tensor]]:
        """The outputs in float64 for the first sets; none of a net whose calls are slow."""
        return self._in_float64(self._sets[:NUM_EXACT]) if self._is_quick else []

    def _in_float64(self, sets: Sequence[list[torch.Tensor]]) -> list[list[torch.Tensor]]:
        """Return the outputs of a copy of the net in float64; none where it does not run."""
        try:
            net = copy.deepcopy(self._call.net).double()
            outputs = []
            for tensors in sets:
                exact = [x.double() if x.is_floating_point() else x.clone() for x in tensors]
                leaves = self._call.filled(exact)
                outputs.append([x.clone() for x in self._call.eager_outputs(leaves, net)])
            return outputs
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return []

    def _compared(
        self,
        built: BuiltBackend,
        tensors: list[torch.Tensor],
        expected: Sequence[torch.Tensor],
        exact: Sequence[torch.Tensor] | None,
        former: Sequence[torch.Tensor] = (),
    ) -> Agreement:
        """Compare the outputs for `tensors`; in doubt in float64 too, for `former` or `tensors`."""
        outputs = built.run(list(tensors))
        agreement = compare_outputs(outputs, expected, exact, built.is_frozen)
        if agreement.wrong and exact is None and self._eager_s <= MAX_DOUBT_S:
            for exact in self._in_float64([list(former or tensors)]):
                agreement = compare_outputs(outputs, expected, exact, built.is_frozen)
        return agreement

    def repeated(self) -> str | None:
        """Return why eager torch does not return the same twice, None where it does."""
        for tensors, expected in zip(self._sets, self._expected, strict=True):
            again = self.try_eager(tensors)
            if wrong := compare_outputs(again or (), expected, None, False).wrong:
                return wrong
        return None

    def agreement(self, built: BuiltBackend) -> Agreement:
        """Compare a backend with eager torch."""
        error, eager_error = 0.0, 0.0 if self._exact else None
        for number, (tensors, expected) in enumerate(zip(self._sets, self._expected, strict=True)):
            copies = [tensor.clone() for tensor in tensors]
            exact = self._exact[number] if number < len(self._exact) else None
            agreement = self._compared(built, copies, expected, exact, tensors)
            error = max(error, agreement.error)
            if eager_error is not None and agreement.eager_error is not None:
                eager_error = max(eager_error, agreement.eager_error)
            wrong = agreement.wrong
            for now, before in zip(copies, tensors, strict=True):
                if not torch.equal(now.nan_to_num(), before.nan_to_num()):
                    wrong = "it writes into an argument"
            if wrong:
                return Agreement(error, eager_error, wrong)
        wrong = None if built.is_frozen else self._stale_weights(built)
        if wrong := wrong or self._hostile_difference(built, finite=True):
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
        """Return a difference after an update of weights, which the backend must read."""
        tensors = self._sets[0]
        with _other_values(self._call.weights.values()) as changed:
            expected = self.try_eager(tensors) if changed else None
            if expected is None:
                return None
            wrong = self._compared(built, tensors, expected, None).wrong
        return wrong and f"when its weights are updated, {wrong}"

    def _hostile_difference(self, built: BuiltBackend, finite: bool) -> str | None:
        """Return where a backend loses or makes values that are not finite, or None."""
        for value, tensors, expected in self._hostile:
            if math.isfinite(value) != finite:
                continue
            if expected is None:
                if built.ends_process:
                    return f"with {value:g} in its arguments {_ENDS}"
                continue
            outputs = built.run(list(tensors))
            for index, (output, right) in enumerate(zip(outputs, expected, strict=True)):
                is_float = right.is_floating_point()
                if is_float and not torch.equal(output.isfinite(), right.isfinite()):
                    return f"with {value:g} in its arguments output {index} is finite elsewhere"
        return None

    def _index_difference(self, built: BuiltBackend) -> str | None:
        """Return a difference from eager torch for hostile indices, in errors or whole numbers."""
        for value, tensors, expected in self._indices:
            case = f"with {value} among its whole numbers"
            if expected is None and built.ends_process:
                return f"{case} {_ENDS}"
            try:
                outputs = built.run(list(tensors))
            except Exception:  # noqa: BLE001 (boundary: foreign code may raise anything)
                outputs = None
            if (outputs is None) != (expected is None):
                failure = "it fails" if outputs is None else "it does not fail"
                return f"{case} {failure}, and eager torch does not agree"
            pairs = zip(outputs or (), expected or (), strict=True)
            for index, (output, right) in enumerate(pairs):
                if not right.is_floating_point() and not torch.equal(output, right):
                    return f"{case} output {index} has other values"
        return None

    @cached_property
    def _index_bounds(self) -> tuple[tuple[int, int] | None, ...]:
        """Bounds on whole numbers for backends that are wrong for others."""
        return fresh_values.index_bounds(
            self._call, lambda tensors: self.try_eager(tensors) is not None, widens=self._is_quick
        )

    def _difference_within(self, built: BuiltBackend) -> str | None:
        """Return a difference for whole numbers that are drawn within these bounds."""
        for seed in range(NUM_FRESH):
            tensors = fresh_values.drawn_within(self._call, self._index_bounds, seed)
            expected = self.try_eager(tensors)
            if expected is not None:
                wrong = compare_outputs(built.run(list(tensors)), expected, None, True).wrong
                if wrong:
                    return f"with whole numbers up to their bounds, {wrong}"
        return None

    def try_eager(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return eager torch's outputs, None where it raises an error."""
        try:
            outputs = self._call.eager_outputs(self._call.filled(tensors))
            return [output.clone() for output in outputs]
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return None


@contextmanager
def _other_values(weights: Iterable[torch.Tensor], seed: int = 0) -> Iterator[bool]:
    """Multiply dense weights by numbers near one, for a while; False where there are none."""
    floats = [
        weight.data
        for weight in weights
        if is_dense_in_memory(weight) and weight.is_floating_point() and weight.numel()
    ]
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


def compare_outputs(
    outputs: Sequence[Any],
    expected: Sequence[torch.Tensor],
    exact: Sequence[torch.Tensor] | None,
    is_frozen: bool,
) -> Agreement:
    """Compare outputs with eager torch's, and with `exact` ones in float64.

    Shapes, dtypes, whole numbers and non-finite elements must be the same. By the bounds of
    `judge.precision`, the error against float64 must be no sign of a lower precision. Without
    float64, or where eager torch is too far from it, its own outputs are the reference.
    """
    error, eager_error = 0.0, 0.0
    wrong = _shape_difference(outputs, expected)
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


def _error(output: torch.Tensor, true: torch.Tensor) -> float:
    return relative_error(
        output.detach().double().cpu().numpy(), true.detach().double().cpu().numpy()
    )
