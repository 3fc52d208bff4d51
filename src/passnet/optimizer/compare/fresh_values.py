"""Other arguments of the same input signature, in kinds: usual, other masks, hostile, out of range.

A backend must be right on all usual ones. Where it is wrong on those of another kind, a check at
each call can keep them from it (`bound`, `index_bounds` of `BuiltBackend`).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from passnet.optimizer.call.call_check import can_be_within, can_have_rows, has_empty_row
from passnet.optimizer.call.net_call import NetCall
from passnet.optimizer.call.values import bits_of, has_usual_floats
from passnet.optimizer.compare.tensor_changes import FLOATS, MASKS, NOT_FINITE, TensorChange, pad

Accepts: TypeAlias = Callable[[list[torch.Tensor]], bool]
"""Return whether eager torch raises no error for these tensors."""

Kind: TypeAlias = Literal["usual", "small", "mask", "indices", "large", "not finite"]

NumberBounds: TypeAlias = tuple[tuple[int, int] | None, ...]
"""The least and greatest whole number allowed in each tensor, None for any."""

WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""Dtypes whose values may be indices."""

SPREAD = (-1, 2**32 + 1, 2**31, -(2**31) - 1)
"""Values put into one element of each argument of whole numbers, as far as its dtype holds them:
out of range of any table, and beyond 32 bits.
"""

FACTORS = (1e-3, 1e3, 1e-6, 1e-20, 1e-40, 1e12, 1e24)
"""Factors on all floats of the example; 1,000 is less than the bound of `agreement.LARGE`. The
smallest makes all floats denormal; a product with a constant may overflow for the largest.
"""

SMALL = 1e-12
"""Below this factor, a product with a constant may underflow, and zeros of eager torch are held."""

FAR = 1e6
"""A factor on all floats that lies beyond that bound."""

_FAR_WHOLE = ((1, 2**40), (997, 2**40), (-997, -(2**41)))
"""Factors on whole numbers such as times in milliseconds, and what is then added."""

MAX_PLACES = 4
"""Most places of an axis of which each may mean another thing, as starts and ends of edges."""

MAX_APART = 6
"""Most tensors of which each is made infinite or NaN while the others stay finite."""

ANY_NUMBER = 2**20
"""Whole numbers up to this are tried for arguments of which eager torch takes any, such as
positions; float32 holds them exactly.
"""


PADDING: Mapping[str, Callable[[int, int], int]] = {
    "least": lambda low, high: low,
    "second": lambda low, high: min(low + 1, high),
    "greatest": lambda low, high: high,
}
"""Whole numbers within bounds that may stand for padding."""


@dataclass(frozen=True, slots=True)
class ArgumentSet:
    """Tensors for another call, and how they differ from the example."""

    kind: Kind
    says: str
    tensors: list[torch.Tensor]


def draws(call: NetCall, bounds: NumberBounds, bound: float, seed: int) -> Iterator[ArgumentSet]:
    """Yield tensors for other calls, the most telling first.

    Args:
        call: the net with its example.
        bounds: the whole numbers that eager torch takes, as from `index_bounds`.
        bound: the largest magnitude of floats that is usual.
        seed: of the random numbers.
    """
    example = call.tensors()
    floats, masks = any(map(has_usual_floats, example)), any(map(is_mask, example))
    wholes = any(map(may_index, example))
    yield ArgumentSet("usual", "", fresh_tensors(call, seed))
    if wholes:
        yield ArgumentSet("indices", "with other whole numbers", drawn_within(call, bounds, seed))
        for says, tensors in padded_within(call, bounds, seed):
            yield ArgumentSet("indices", says, tensors)
    for says, change in MASKS if masks else ():
        yield ArgumentSet("mask", says, _changed(call, seed, is_mask, change))
    if floats:
        for value in (math.nan, math.inf, -math.inf):
            says = f"with {value:g} in its arguments"
            yield ArgumentSet("not finite", says, _with_value(call, seed, value, has_usual_floats))
        for says, change in FLOATS:
            yield ArgumentSet("usual", says, _changed(call, seed, has_usual_floats, change))
    for value in SPREAD if wholes else ():
        says = f"with {value} among its whole numbers"
        yield ArgumentSet("indices", says, _with_value(call, seed, value, may_index))
    for number, (tensor, ends) in enumerate(zip(example, bounds, strict=False)):
        if ends and may_index(tensor):
            for says, tensors in _beyond(call, number, ends, seed):
                yield ArgumentSet("indices", says, tensors)
    if floats:
        for factor in FACTORS:
            kind: Kind = "usual" if _largest(example) * factor <= bound else "large"
            kind = "small" if factor < SMALL else kind
            yield ArgumentSet(
                kind, f"with arguments {factor:g} times as large", _scaled(example, factor)
            )
        for value in (1e-40, -0.0):
            says = f"with {value:g} in its arguments"
            yield ArgumentSet("usual", says, _with_value(call, seed, value, has_usual_floats))
        numbers = [number for number, tensor in enumerate(example) if has_usual_floats(tensor)]
        for number, (says, change) in itertools.product(numbers[:MAX_APART], NOT_FINITE):
            says = f"with {says} in tensor {number}"
            yield ArgumentSet("not finite", says, _with_one(call, seed, number, change))
    yield ArgumentSet("usual", "", fresh_tensors(call, seed + 1))
    if wholes:
        yield ArgumentSet(
            "indices", "with other whole numbers", drawn_within(call, bounds, seed + 1)
        )
    yield ArgumentSet(
        "usual", "with other floats alone", fresh_tensors(call, seed + 2, floats_only=True)
    )
    if floats:
        yield ArgumentSet("large", f"with arguments up to {bound:g}", _up_to(bound, call, seed))
        yield ArgumentSet("large", f"with arguments {FAR:g} times as large", _scaled(example, FAR))


def fresh_tensors(call: NetCall, seed: int, floats_only: bool = False) -> list[torch.Tensor]:
    """Return tensors for another call, like the example's.

    Floats have its mean and deviation, whole numbers its range. A mask keeps its values in another
    order. With `floats_only` other tensors stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    return [
        _fresh(x, generator) if x.is_floating_point() or not floats_only else x.clone()
        for x in call.tensors()
    ]


def drawn_within(call: NetCall, bounds: NumberBounds, seed: int) -> list[torch.Tensor]:
    """Return fresh tensors with whole numbers within bounds; both ends and the second occur.

    They occur at the same positions of all tensors; with an odd seed, of every other one swapped.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = fresh_tensors(call, seed)
    position = int(torch.randint(2**31, (), generator=generator))
    for number, (tensor, ends) in enumerate(zip(tensors, bounds, strict=False)):
        if ends is not None and tensor.numel():
            low, high = ends
            numbers = torch.randint(low, high + 1, (tensor.numel(),), generator=generator)
            special = [low, high, min(low + 1, high)]
            if number * seed % 2:
                special[:2] = high, low
            first = position % tensor.numel()
            for offset, value in enumerate(special[: tensor.numel()]):
                numbers[(first + offset) % tensor.numel()] = value
            if not _overlaps(tensor):
                tensor.copy_(numbers.reshape(tensor.shape))
    return tensors


def padded_within(
    call: NetCall, bounds: NumberBounds, seed: int
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield tensors with whole numbers within bounds, padded by one number or filled with it."""
    for name, is_whole in itertools.product(PADDING, (False, True)):
        tensors = drawn_within(call, bounds, seed)
        for tensor, ends in zip(tensors, bounds, strict=False):
            if ends is not None and tensor.numel() and not _overlaps(tensor):
                padded = torch.Tensor.fill_ if is_whole else pad
                padded(tensor, PADDING[name](*ends))
        where = "alone" if is_whole else "at the ends of rows"
        yield f"with the {name} whole number {where}", tensors


def index_bounds(call: NetCall, accepts: Accepts) -> NumberBounds:
    """Return the whole numbers that eager torch takes in each tensor, None of other dtypes.

    From the example's range they widen to 0 and 1, and to the last row of a table or axis that
    eager torch takes, if it takes none beyond; to `ANY_NUMBER` where it takes any number. The
    result is empty where an argument of whole numbers cannot be checked at each call.
    """
    tensors = call.tensors()
    if not all(can_be_within(tensor) for tensor in tensors if may_index(tensor)):
        return ()
    own = tuple((int(x.min()), int(x.max())) if may_index(x) else None for x in tensors)
    sizes = sorted({n for x in (*call.weights.values(), *tensors) for n in x.shape if n > 1})
    bounds = tuple(
        None if ends is None else _widened(call, accepts, number, ends, sizes)
        for number, ends in enumerate(own)
    )
    is_accepted = all(accepts(drawn_within(call, bounds, seed)) for seed in range(2))
    return bounds if is_accepted else own


def mask_bounds(call: NetCall) -> NumberBounds:
    """Return the values of the example's masks of one value, None for other tensors; empty where
    there is no such mask, or one cannot be checked at each call.
    """
    tensors = call.tensors()
    masks = [is_mask(x) and x.dtype is not torch.float32 for x in tensors]
    bounds = tuple(
        (int(x.min()), int(x.max())) if is_one and int(x.min()) == int(x.max()) else None
        for x, is_one in zip(tensors, masks, strict=True)
    )
    is_checked = all(map(can_be_within, (x for x, b in zip(tensors, bounds, strict=True) if b)))
    return bounds if any(bounds) and is_checked else ()


def masks_of_rows(call: NetCall) -> tuple[bool, ...]:
    """Return which tensors are masks none of whose rows, along the last axis, is all zeros."""
    return tuple(
        is_mask(x) and can_have_rows(x) and not has_empty_row([x], [True]) for x in call.tensors()
    )


def with_filled_rows(tensors: list[torch.Tensor], rows: Sequence[bool]) -> list[torch.Tensor]:
    """Return tensors whose rows of zeros begin with a one, where `rows` says so."""
    filled = list(tensors)
    for number, (tensor, is_mask_of_rows) in enumerate(zip(tensors, rows, strict=False)):
        if is_mask_of_rows:
            filled[number] = tensor.clone()
            filled[number][..., 0] |= ~tensor.any(-1)
    return filled


def may_index(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a dtype of indices."""
    return tensor.dtype in WHOLE and bool(tensor.numel())


def is_mask(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is of bools, or of many zeros and ones."""
    if tensor.dtype is torch.bool:
        return bool(tensor.numel())
    if tensor.dtype not in WHOLE or tensor.numel() <= 8:
        return False
    return int(tensor.min()) >= 0 and int(tensor.max()) <= 1


def _largest(tensors: Sequence[torch.Tensor]) -> float:
    finite = [torch.where(x.isfinite(), x, 0.0) for x in tensors if has_usual_floats(x)]
    return max([0.0, *(float(x.detach().abs().max()) for x in finite)])


def _changed(
    call: NetCall,
    seed: int,
    applies: Callable[[torch.Tensor], bool],
    change: TensorChange,
) -> list[torch.Tensor]:
    """Return fresh tensors of which each to which it applies was changed in place.

    Tensors that overlap themselves, such as expanded ones, stay as they are.
    """
    tensors = fresh_tensors(call, seed)
    for tensor in filter(applies, tensors):
        if not _overlaps(tensor):
            change(tensor)
    return tensors


def _overlaps(tensor: torch.Tensor) -> bool:
    pairs = zip(tensor.shape, tensor.stride(), strict=True)
    return any(size > 1 and stride == 0 for size, stride in pairs)


def _with_value(
    call: NetCall, seed: int, value: float, applies: Callable[[torch.Tensor], bool]
) -> list[torch.Tensor]:
    """Return fresh tensors with a value in one element of each to which it applies."""
    generator = torch.Generator().manual_seed(seed)

    def put(tensor: torch.Tensor) -> None:
        position = torch.randint(tensor.numel(), (), generator=generator)
        limited = value
        if not tensor.is_floating_point():
            info = torch.iinfo(tensor.dtype)
            limited = min(max(value, info.min), info.max)
        tensor[torch.unravel_index(position, tensor.shape)] = limited

    return _changed(call, seed, applies, put)


def _with_one(call: NetCall, seed: int, number: int, change: TensorChange) -> list[torch.Tensor]:
    """Return fresh tensors of which one was changed in place, if it overlaps itself nowhere."""
    tensors = fresh_tensors(call, seed)
    if tensors[number].ndim and not _overlaps(tensors[number]):
        change(tensors[number])
    return tensors


def _scaled(tensors: Sequence[torch.Tensor], factor: float) -> list[torch.Tensor]:
    """Return tensors with all floats times a factor."""
    return [x * factor if has_usual_floats(x) else x.clone() for x in tensors]


def _up_to(bound: float, call: NetCall, seed: int) -> list[torch.Tensor]:
    """Return fresh tensors whose floats have a largest magnitude, or the largest of its dtype."""

    def scale(tensor: torch.Tensor) -> None:
        most = min(bound, torch.finfo(tensor.dtype).max)
        largest = float(tensor.abs().max())
        if math.isfinite(largest) and largest:
            tensor.mul_(most / largest)

    return _changed(call, seed, has_usual_floats, scale)


def _fresh(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    if tensor.numel() == 0 or tensor.is_quantized:
        return tensor.clone()
    if _overlaps(tensor):
        narrow = tensor[tuple(slice(1 if stride == 0 else None) for stride in tensor.stride())]
        return _fresh(narrow, generator).expand(tensor.shape)
    values = tensor.detach().to("cpu")
    if not (has_usual_floats(values) or values.dtype in WHOLE) or _is_to_permute(values):
        order = torch.randperm(values.numel(), generator=generator)
        bits = bits_of(values.resolve_conj().resolve_neg().contiguous()).reshape(-1)
        sample = bits[order].view(values.dtype).reshape(values.shape)
    elif values.is_floating_point():
        sample = torch.randn(values.shape, generator=generator) * float(values.float().std(False))
        sample = sample + float(values.float().mean())
    else:
        low, high = int(values.min()), int(values.max())
        sample = torch.randint(low, high + 1, values.shape, generator=generator)
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return fresh.copy_(sample).to(tensor.device)


def _is_to_permute(values: torch.Tensor) -> bool:
    """Return whether a tensor has few values, or none whose mean is a number."""
    if values.is_floating_point() and not bool(values.isfinite().all()):
        return True
    sample = values.reshape(-1)[:4096]
    return values.numel() > 8 and sample.unique().numel() <= 2


def _beyond(
    call: NetCall, number: int, ends: tuple[int, int], seed: int
) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield how whole numbers of one tensor are beyond the bounds of a table, or far from zero.

    Where an axis has a few places, as one for rows and one for columns, each is tried alone.
    """
    tensor = call.tensors()[number]
    info = torch.iinfo(tensor.dtype)
    for value in (-1, ends[1] + 1):
        if not info.min <= value <= info.max:
            continue
        for position in _places(tensor):
            says = f"with {value} among its whole numbers"
            yield says, _with_index(call, number, value, position)
    if ends[1] >= ANY_NUMBER and tensor.dtype is torch.int64:
        for factor, far in _FAR_WHOLE:
            tensors = fresh_tensors(call, seed)
            tensors[number] = tensors[number] * factor + far
            yield "with whole numbers far from zero", tensors


def _places(tensor: torch.Tensor) -> list[tuple[int, ...]]:
    """Return the first element of a tensor, and those beside it along short first or last axes."""
    first = (0,) * tensor.ndim
    positions = [first]
    for axis in {0, tensor.ndim - 1} if tensor.ndim > 1 else ():
        if tensor.shape[axis] <= MAX_PLACES:
            sizes = range(1, tensor.shape[axis])
            positions += [(*first[:axis], position, *first[axis + 1 :]) for position in sizes]
    return positions


def _with_index(
    call: NetCall, number: int, index: int, position: tuple[int, ...] | None = None
) -> list[torch.Tensor]:
    """Return the example with a whole number in one element of one of its tensors, the first."""
    tensors = [tensor.clone() for tensor in call.tensors()]
    if not _overlaps(tensors[number]):
        tensors[number][position or (0,) * tensors[number].ndim] = index
    return tensors


def _last_taken(takes: Callable[[int], bool], accepted: int, refused: int) -> int:
    """Return the last number that is taken, by bisection."""
    while refused - accepted > 1:
        middle = (accepted + refused) // 2
        accepted, refused = (middle, refused) if takes(middle) else (accepted, middle)
    return accepted


def _widened(
    call: NetCall, accepts: Accepts, number: int, own: tuple[int, int], sizes: Sequence[int]
) -> tuple[int, int]:
    """Return the range of one argument, the others being as in the example."""
    most = torch.iinfo(call.tensors()[number].dtype).max

    def takes(index: int) -> bool:
        if index > most or _overlaps(call.tensors()[number]):
            return False
        return accepts(_with_index(call, number, index))

    low, high = own
    if low > 0 and takes(0):
        low = 0
    if high < 1 and takes(1):
        high = 1
    if takes(min(most, 2**31)):  # no index of anything
        return low, max(high, min(most, ANY_NUMBER))
    for rows in sizes:
        if rows > high and not takes(rows):
            return low, rows - 1 if takes(rows - 1) else _last_taken(takes, high, rows - 1)
    return low, max(high, most) if takes(most) else high
