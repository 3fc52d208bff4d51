"""Comparison of a backend with eager torch, on fresh and on hostile arguments."""

import math
import resource
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path

import torch

from passnet.core.jobs.overtime import OvertimeError
from passnet.optimizer.call.call_check import (
    can_be_bounded,
    has_empty_row,
    is_dense_in_memory,
)
from passnet.optimizer.call.net_call import BuiltBackend, NetCall, within_overtime
from passnet.optimizer.call.values import comparable, has_usual_floats
from passnet.optimizer.compare import fresh_values
from passnet.optimizer.compare.float64_copy import copy_in_float64
from passnet.optimizer.compare.fresh_values import ArgumentSet, NumberBounds, is_mask, may_index
from passnet.optimizer.compare.outputs import Agreement, compare_outputs, without_noise

SPARE_BYTES = 4 * 2**30
"""Memory that calls on hostile whole numbers may take: one of them may be a size."""

MIN_DRAWS, MAX_DRAWS_S, MAX_BYTES = 8, 8.0, 2**30
"""Further sets of arguments: at least so many, and more while eager torch takes no more seconds for
all of them, and they and their outputs no more bytes.
"""

NUM_CALLS = 2
"""Calls of eager torch, of which the shortest tells its time."""

NUM_REPEATED = 3
"""Sets on which eager torch must return the same twice, besides the example."""

NUM_WITHIN = 3
"""Sets drawn within bounds on whole numbers."""

MAX_EXACT_S = 0.1
"""The example is compared with float64 too, if a call of the net takes no longer than this."""

MAX_DOUBT_S = 1.0
"""If a call takes no longer than this, a set that seems wrong is compared with float64 too."""

MAX_FLOAT64_BYTES = 2**27
"""One weight in float64 takes no more than this, or than all weights as they are."""

LARGE = 1024.0
"""Backends that are wrong for non-finite values are bounded by this multiple of the example's."""

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers of the bytes of a float."""

_ENDS = "it may end the process, where eager torch raises an error"

MOST_OVERTIME = 3
"""Calls that take too long, after which all further ones count as failed."""


class EagerComparison:
    """Compares backends with eager torch, each on the same arguments.

    With `finite`, arguments are neither NaN nor infinite, and indices not out of range. Further
    arguments are drawn while their calls take no more than `max_draws_s`, or `most_of_kind` of each
    kind. `allowed` is the relative error that a backend of a lower precision may have. `eager_s` is
    the time of a call of eager torch.
    """

    def __init__(
        self,
        call: NetCall,
        finite: bool = False,
        seed: int = 0,
        max_exact_s: float = MAX_EXACT_S,
        max_draws_s: float = MAX_DRAWS_S,
        most_of_kind: int | None = None,
        allowed: float | None = None,
    ) -> None:
        self._allowed, self._num_overtime = allowed, 0
        self.call, self._finite, self._seed = call, finite, seed
        self._most_of_kind = most_of_kind
        self._max_draws_s = max_draws_s
        example = [tensor.clone() for tensor in call.tensors()]
        self.eager_s, expected = math.inf, None
        for _ in range(1 + NUM_CALLS):  # the first call may be slow
            start = time.perf_counter()
            expected = self.try_eager(example)
            self.eager_s = min(self.eager_s, time.perf_counter() - start)
        self._is_quick = self.eager_s <= max_exact_s
        floats = [x for x in call.tensors() if has_usual_floats(x)]
        finite_only = [torch.where(x.isfinite(), x, 0.0).detach() for x in floats]
        self._bound = LARGE * max([1.0, *(float(x.abs().max()) for x in finite_only)])
        self._can_be_bounded = all(map(can_be_bounded, call.tensors()))
        self._sets = [(ArgumentSet("usual", "", example), expected)]

    @cached_property
    def _drawn(self) -> list[tuple[ArgumentSet, list[torch.Tensor] | None]]:
        """Further arguments, with eager torch's outputs, None where it raises an error."""
        num_bytes = sum(x.nbytes for x in (*self.call.tensors(), *self.call.outputs))
        most = max(
            MIN_DRAWS,
            min(int(self._max_draws_s / max(self.eager_s, 1e-6)), MAX_BYTES // (num_bytes + 1)),
        )
        plan = self.call.plan
        if plan is not None:
            return self._with_expected(plan.draws(self.call.sizes, self._seed))
        kinds = fresh_values.draws(self.call, self._index_bounds, self._bound, self._seed)
        left_out = ("indices", "not finite") if self._finite else ()
        kept = (draw for draw in kinds if draw.kind not in left_out)
        if self._most_of_kind is None:
            kept = islice(kept, most)
        else:
            kept = _few_of_each(kept, self._most_of_kind)
        return self._with_expected(kept)

    def _with_expected(
        self, draws: Iterable[ArgumentSet]
    ) -> list[tuple[ArgumentSet, list[torch.Tensor] | None]]:
        """Return arguments with eager torch's outputs. Small ones that take too long are left out:
        Intel's processors compute denormal numbers up to a hundred times more slowly.
        """
        found = []
        for draw in draws:
            num_overtime = self._num_overtime
            expected = self.try_eager(draw.tensors)
            if draw.kind == "small" and self._num_overtime > num_overtime:
                self._num_overtime = num_overtime
                continue
            found.append((draw, expected))
        return found

    @property
    def says(self) -> str:
        """The sizes of this call, in words."""
        pairs = zip(self.call.ranges, self.call.sizes, strict=True)
        return "for " + " and ".join(f"{size_range.name} {size}" for size_range, size in pairs)

    @property
    def seconds(self) -> float:
        """The time in which a backend as fast as eager torch is compared, about."""
        return (1 + len(self._drawn)) * self.eager_s

    @cached_property
    def _exact(self) -> list[torch.Tensor] | None:
        """The outputs in float64 for the example; None of a net whose calls are slow."""
        return self._in_float64(self._sets[0][0].tensors) if self._is_quick else None

    def _in_float64(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return the outputs of a copy of the net in float64; None where it does not run."""
        sizes = [2 * weight.nbytes for weight in self.call.weights.values()]
        if max(sizes, default=0) > max(sum(sizes) / 2, MAX_FLOAT64_BYTES):
            return None
        try:
            exact = [x.double() if x.is_floating_point() else x.clone() for x in tensors]
            net = copy_in_float64(self.call.net)
            outputs = self.call.eager_outputs(self.call.filled(exact), net)
            return [output.clone() for output in outputs]
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return None

    def repeated(self) -> str | None:
        """Return why eager torch does not return the same twice, None where it does."""
        for draw, expected in [*self._sets, *self._drawn[:NUM_REPEATED]]:
            again = self.try_eager(draw.tensors)
            if (again is None) != (expected is None):
                return "it fails once of two times"
            if wrong := compare_outputs(again or (), expected or (), None, False).wrong:
                return wrong
        return None

    def agreement(self, built: BuiltBackend) -> Agreement:
        """Compare a backend with eager torch, and find for which arguments it is right.

        It must be right on all usual ones. Where it is wrong only for NaN, infinities and large
        values, a bound keeps these from it; where it is wrong for whole numbers or masks, bounds
        on them do, within which it is compared again. Where that is not enough, or would leave but
        one value in a mask, calls with an empty row in a mask are kept from it instead.
        """
        agreed = self._agreement(built, ())
        if self.call.plan is not None:
            return replace(agreed, index_bounds=self.call.plan.bounds)
        rows = fresh_values.masks_of_rows(self.call)
        if not any(rows) or not (agreed.wrong or _is_of_one_value(agreed.index_bounds, rows)):
            return agreed
        within = self._agreement(built, rows)
        if within.wrong or _is_of_one_value(within.index_bounds, rows):
            return agreed
        return replace(within, filled_rows=rows)

    def _agreement(self, built: BuiltBackend, rows: Sequence[bool]) -> Agreement:
        """Compare a backend where these tensors, if any, have no row of zeros."""
        draw, expected = self._sets[0]
        first = self._difference(built, draw, expected, self._exact)
        if first.wrong:
            return first
        if not built.is_frozen and (wrong := self._stale_weights(built)):
            return replace(first, wrong=wrong)
        error, wrongs = first.error, {}
        for draw, expected in self._drawn:
            if has_empty_row(draw.tensors, rows) or not self._counts(draw, built):
                continue
            compared = self._difference(built, draw, expected)
            error = max(error, compared.error) if draw.kind == "usual" else error
            if compared.wrong:
                wrongs.setdefault(draw.kind, compared.wrong)
            if draw.kind in ("usual", "small") and compared.wrong:
                return replace(first, error=error, wrong=compared.wrong)
        first = replace(first, error=error)
        bounds: NumberBounds = ()
        if wrong := wrongs.get("indices"):
            bounds = self._bounds_within(built, self._index_choices, rows)
            if not bounds:
                return replace(first, wrong=wrong)
        if wrong := wrongs.get("mask"):
            masks = fresh_values.mask_bounds(self.call)
            bounds = self._bounds_within(built, [_joined(bounds, masks)], rows) if masks else ()
            if not bounds:
                return replace(first, wrong=wrong)
        wrong = wrongs.get("not finite") or wrongs.get("large")
        if wrong and not self._can_be_bounded:
            return replace(first, wrong=wrong)
        return replace(first, bound=self._bound if wrong else None, index_bounds=bounds)

    def within(self, built: BuiltBackend, agreed: Agreement) -> Agreement:
        """Return an agreement at other sizes with this call's: the larger error, and why the
        backend is wrong within the bounds found.
        """
        left_out = {"large", "not finite"} if agreed.bound is not None else set()
        left_out |= {"indices", "mask"} if agreed.index_bounds else set()
        rows = agreed.filled_rows
        for draw, expected in [*self._sets, *self._drawn]:
            is_served = draw.kind not in left_out and not has_empty_row(draw.tensors, rows)
            if is_served and self._counts(draw, built):
                own = self._difference(built, draw, expected)
                if own.wrong:
                    return replace(agreed, wrong=f"{self.says}: {own.wrong}")
                if draw.kind == "usual":
                    agreed = replace(agreed, error=max(agreed.error, own.error))
        if self.call.plan is not None or not agreed.index_bounds:
            return agreed
        if not self._is_right_within(built, agreed.index_bounds, rows):
            return replace(agreed, wrong=f"{self.says}: it has other values than eager torch")
        return agreed

    def _counts(self, draw: ArgumentSet, built: BuiltBackend) -> bool:
        """Return whether a backend must be right on some arguments: one of a lower precision on
        those like the example, and those that are kept from it otherwise.
        """
        return built.precision is None or not draw.says or draw.kind not in ("usual", "small")

    def _allowed_for(self, draw: ArgumentSet, built: BuiltBackend) -> float | None:
        """Return the relative error that a lower precision may have; None of the net's own."""
        if built.precision is None:
            return None
        return math.inf if draw.kind in ("large", "not finite") else self._allowed or 0.0

    def _difference(
        self,
        built: BuiltBackend,
        draw: ArgumentSet,
        expected: Sequence[torch.Tensor] | None,
        exact: Sequence[torch.Tensor] | None = None,
    ) -> Agreement:
        """Compare a backend on some arguments; in doubt, with float64 too."""
        case = f"{draw.says}, " if draw.says else ""
        if expected is None and built.ends_process:
            return Agreement(0.0, None, f"{case}{_ENDS}")
        copies = [tensor.clone() for tensor in draw.tensors]
        try:
            with _spare_memory(), self._limited() if expected is None else nullcontext():
                outputs = built.run(copies)
        except OvertimeError:  # as of eager torch
            return Agreement(0.0, None, None)
        except Exception as cause:  # noqa: BLE001 (boundary: foreign code may raise anything)
            text = str(cause).partition("\n")[0][:200]
            wrong = f"{case}it fails, and eager torch does not: {text}" if expected else None
            return Agreement(0.0, None, wrong)
        if expected is None:
            return Agreement(0.0, None, f"{case}it does not fail, and eager torch does")
        allowed = self._allowed_for(draw, built)
        compared = compare_outputs(outputs, expected, exact, built.is_frozen, allowed)
        if draw.kind == "small" and not compared.wrong and any(map(_is_kept, outputs, expected)):
            return replace(compared, wrong=f"{case}it keeps numbers that eager torch makes zero")
        is_in_doubt = compared.wrong and exact is None and allowed is None
        if is_in_doubt and self.eager_s <= MAX_DOUBT_S:
            exact = self._in_float64(draw.tensors)
            if exact is not None:
                if draw.says:
                    outputs = without_noise(outputs, expected, exact)
                compared = compare_outputs(outputs, expected, exact, built.is_frozen)
        if any(not _is_equal(now, was) for now, was in zip(copies, draw.tensors, strict=True)):
            compared = replace(compared, wrong="it writes into an argument")
        return replace(compared, wrong=compared.wrong and case + compared.wrong)

    def _stale_weights(self, built: BuiltBackend) -> str | None:
        """Return a difference after an update of weights, which the backend must read."""
        draw = self._sets[0][0]
        with _other_values(self.call.weights.values()) as changed:
            expected = self.try_eager(draw.tensors) if changed else None
            if expected is None:
                return None
            wrong = self._difference(built, draw, expected).wrong
        return wrong and f"when its weights are updated, {wrong}"

    @cached_property
    def _index_bounds(self) -> NumberBounds:
        """The whole numbers that eager torch takes."""
        return fresh_values.index_bounds(
            self.call, lambda tensors: self.try_eager(tensors) is not None
        )

    @cached_property
    def _index_choices(self) -> list[NumberBounds]:
        """Bounds on whole numbers: eager torch's, masks of zeros and ones, the example's."""
        wide, tensors = self._index_bounds, self.call.tensors()
        own = tuple((int(x.min()), int(x.max())) if may_index(x) else None for x in tensors)
        masks = tuple(
            (0, 1) if is_mask(x) and ends else ends for x, ends in zip(tensors, wide, strict=False)
        )
        return list(dict.fromkeys((wide, masks, own))) if wide else []

    def _bounds_within(
        self, built: BuiltBackend, choices: Sequence[NumberBounds], rows: Sequence[bool]
    ) -> NumberBounds:
        """Return the first bounds within which a backend is right; empty if there are none."""
        for bounds in choices:
            if any(bounds) and self._is_right_within(built, bounds, rows):
                return bounds
        return ()

    def _is_right_within(
        self, built: BuiltBackend, bounds: NumberBounds, rows: Sequence[bool]
    ) -> bool:
        within = [fresh_values.drawn_within(self.call, bounds, seed) for seed in range(NUM_WITHIN)]
        padded = [tensors for _, tensors in fresh_values.padded_within(self.call, bounds, 0)]
        for sample in (*within, *padded):
            tensors = fresh_values.with_filled_rows(sample, rows)
            expected = self.try_eager(tensors)
            draw = ArgumentSet("indices", "", tensors)
            if self._difference(built, draw, expected).wrong:
                return False
        return True

    def _limited(self) -> AbstractContextManager[None]:
        eager_s = self.eager_s if math.isfinite(self.eager_s) else self.call.seconds
        return within_overtime(eager_s)

    def try_eager(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """Return eager torch's outputs, None where it raises an error, or may loop for ever."""
        if self._num_overtime >= MOST_OVERTIME:
            return None
        try:
            copies = [tensor.clone() for tensor in tensors]
            with self.call.watched(), _spare_memory(), self._limited():
                outputs = self.call.eager_outputs(self.call.filled(copies))
            return [output.clone() for output in outputs]
        except OvertimeError:
            self._num_overtime += 1
            return None
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            return None


def _is_of_one_value(bounds: NumberBounds, masks: Sequence[bool]) -> bool:
    """Return whether bounds leave a mask but one value."""
    pairs = zip(bounds, masks, strict=False)
    return any(is_mask and ends and ends[0] == ends[1] for ends, is_mask in pairs)


def _few_of_each(draws: Iterable[ArgumentSet], count: int) -> Iterator[ArgumentSet]:
    """Yield the first arguments of each kind."""
    counts: Counter[str] = Counter()
    for draw in draws:
        counts[draw.kind] += 1
        if counts[draw.kind] <= count:
            yield draw


@contextmanager
def _spare_memory() -> Iterator[None]:
    """Let this process take so much more address space, so that a larger tensor is an error."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")
    if not pages.exists():  # macOS, which limits no address space
        yield
        return
    num_pages = int(pages.read_text(encoding="ascii").split()[0])
    limit = num_pages * resource.getpagesize() + SPARE_BYTES
    if soft != resource.RLIM_INFINITY and soft <= limit:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _joined(first: NumberBounds, second: NumberBounds) -> NumberBounds:
    """Return the bounds of the second for each tensor that has some there, else of the first."""
    return tuple(own or bounds for own, bounds in zip_longest(second, first))


def _is_equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Return whether two tensors are equal, NaN to NaN."""
    first, second = comparable(first), comparable(second)
    same = first == second
    return bool((same | ((first != first) & (second != second))).all())


@contextmanager
def _other_values(weights: Iterable[torch.Tensor]) -> Iterator[bool]:
    """Change dense weights by up to a quarter, for a while; False where there are none.

    Bits are flipped in every other element, and back again, which takes no copy.
    """
    floats = [
        weight.data for weight in weights if is_dense_in_memory(weight) and has_usual_floats(weight)
    ]
    changed: list[tuple[torch.Tensor, int]] = []
    try:
        for weight in floats:
            # the second bit of the mantissa, or of zeros all bits of a quarter
            bits = 1 << round(-math.log2(torch.finfo(weight.dtype).eps)) - 2
            if not bool(weight.any()):
                bits = int(torch.tensor(0.25, dtype=weight.dtype).view(_BITS[weight.itemsize]))
            _flip(weight, bits)
            changed.append((weight, bits))
        yield bool(floats)
    finally:
        for weight, bits in changed:
            _flip(weight, bits)


def _flip(weight: torch.Tensor, bits: int) -> None:
    """Flip bits of every other element."""
    elements = weight.as_strided((weight.numel(),), (1,)).view(_BITS[weight.itemsize])
    elements[::2] ^= bits


def _is_kept(output: torch.Tensor, right: torch.Tensor) -> bool:
    """Return whether an output has numbers where all of eager torch's are zero.

    The range of float16 is so small that compilers which compute in float32 inside keep some.
    """
    output, right = comparable(output), comparable(right)
    return right.dtype != torch.float16 and not bool(right.any()) and bool(output.any())
