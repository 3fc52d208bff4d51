"""Other arguments of the same input signature: fresh values, hostile ones, bounds of indices."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch

from passnet.optimizer.call.call_check import can_be_within
from passnet.optimizer.call.net_call import NetCall

Accepts: TypeAlias = Callable[[list[torch.Tensor]], bool]
"""Return whether eager torch raises no error for these tensors."""

HOSTILE = (float("nan"), float("inf"), -float("inf"), 1e-40)
"""Values put into one element of each floating-point argument; the last is a float32 denormal."""

HOSTILE_INDICES = (-1, 2**32 + 1)
"""Values put into one element of each int32 and int64 argument: out of range of any table."""


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


def hostile_tensors(
    call: NetCall, seed: int, bound: float
) -> Iterator[tuple[float, list[torch.Tensor]]]:
    """Return fresh tensors with one hostile value in each floating-point argument.

    The last ones are scaled so that their largest magnitude is the bound.
    """
    if not any(map(_has_floats, call.tensors())):
        return
    for value in HOSTILE:
        yield value, _with_value(call, seed, value, _has_floats)
    yield bound, [_up_to(bound, tensor) for tensor in fresh_tensors(call, seed)]


def hostile_indices(call: NetCall, seed: int) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Return fresh tensors with one whole number each that is hardly an index of anything."""
    if not any(map(may_index, call.tensors())):
        return
    for value in HOSTILE_INDICES:
        yield value, _with_value(call, seed, value, may_index)


def _with_value(
    call: NetCall, seed: int, value: float, applies: Callable[[torch.Tensor], bool]
) -> list[torch.Tensor]:
    """Return fresh tensors with a value in one element of each to which it applies."""
    generator = torch.Generator().manual_seed(seed)
    tensors = fresh_tensors(call, seed)
    for tensor in filter(applies, tensors):
        position = torch.randint(tensor.numel(), (), generator=generator)
        is_float = tensor.is_floating_point()
        limited = value if is_float else min(value, torch.iinfo(tensor.dtype).max)
        tensor[torch.unravel_index(position, tensor.shape)] = limited
    return tensors


def drawn_within(
    call: NetCall, bounds: Sequence[tuple[int, int] | None], seed: int
) -> list[torch.Tensor]:
    """Return fresh tensors with whole numbers within bounds; both ends occur.

    They occur at the same positions of all tensors; with an odd seed, of every other one swapped.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = fresh_tensors(call, seed)
    position = int(torch.randint(2**31, (), generator=generator))
    for number, (tensor, ends) in enumerate(zip(tensors, bounds, strict=True)):
        if ends is not None:
            numbers = torch.randint(ends[0], ends[1] + 1, (tensor.numel(),), generator=generator)
            first = position % tensor.numel()
            numbers[first - 1], numbers[first] = ends if number * seed % 2 == 0 else ends[::-1]
            tensor.copy_(numbers.reshape(tensor.shape))
    return tensors


def _has_floats(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() and bool(tensor.numel())


def may_index(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has a dtype of indices."""
    return tensor.dtype in (torch.int32, torch.int64) and bool(tensor.numel())


def _up_to(bound: float, tensor: torch.Tensor) -> torch.Tensor:
    """Scale a tensor of floats to a largest magnitude, or to the largest of its dtype."""
    if not tensor.is_floating_point() or not tensor.numel() or not bool(tensor.isfinite().all()):
        return tensor
    most = min(bound, torch.finfo(tensor.dtype).max)
    largest = float(tensor.abs().max())
    return tensor * (most / largest) if largest else tensor


def _fresh(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    values = tensor.detach().to("cpu")
    if values.numel() == 0:
        return tensor.clone()
    if values.dtype is torch.bool or values.is_complex() or _is_mask(values):
        order = torch.randperm(values.numel(), generator=generator)
        sample = values.reshape(-1)[order].reshape(values.shape)
    elif values.is_floating_point():
        sample = torch.randn(values.shape, generator=generator) * float(values.float().std(False))
        sample = sample + float(values.float().mean())
    else:
        low, high = int(values.min()), int(values.max())
        sample = torch.randint(low, high + 1, values.shape, generator=generator)
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return fresh.copy_(sample).to(tensor.device)


def _is_mask(values: torch.Tensor) -> bool:
    """Return whether a tensor has few values, or none whose mean is a number."""
    if values.is_floating_point() and not bool(values.isfinite().all()):
        return True
    sample = values.reshape(-1)[:4096]
    return values.numel() > 8 and sample.unique().numel() <= 2


def index_bounds(
    call: NetCall, accepts: Accepts, widens: bool = True
) -> tuple[tuple[int, int] | None, ...]:
    """Return the smallest and largest index allowed in each tensor argument, None for any.

    A backend may return values where eager torch raises an error for an index out of range. It is
    right within bounds: the example's range, and if `widens`, at a call or two for each table, 0
    and 1, and the rows of a table among the weights whose last row eager torch takes, but not the
    next. The result is empty where an argument of whole numbers cannot be checked at each call.
    """
    tensors = call.tensors()
    if not all(can_be_within(tensor) for tensor in tensors if may_index(tensor)):
        return ()
    own = tuple((int(x.min()), int(x.max())) if may_index(x) else None for x in tensors)
    if not widens:
        return own
    tables = sorted({weight.shape[0] for weight in call.weights.values() if weight.ndim == 2})
    bounds = tuple(
        None if ends is None else _widened(call, accepts, number, ends, tables)
        for number, ends in enumerate(own)
    )
    is_accepted = all(accepts(drawn_within(call, bounds, seed)) for seed in range(2))
    return bounds if is_accepted else own


def _widened(
    call: NetCall, accepts: Accepts, number: int, own: tuple[int, int], tables: Sequence[int]
) -> tuple[int, int]:
    """Return the range of one argument, the others being as in the example."""

    def takes(index: int) -> bool:
        tensors = fresh_tensors(call, 0)
        tensor = tensors[number]
        tensor[(0,) * tensor.ndim] = min(index, torch.iinfo(tensor.dtype).max)
        return accepts(tensors)

    low, high = own
    if low > 0 and takes(0):
        low = 0
    if high < 1 and takes(1):
        high = 1
    for rows in tables:
        if rows > high and not takes(rows):
            return low, rows - 1 if takes(rows - 1) else high
    return low, high
