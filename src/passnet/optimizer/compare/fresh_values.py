"""Other arguments of the same form: fresh values like those of an example, and hostile ones."""

from collections.abc import Iterator, Sequence

import torch

from passnet.optimizer.call.net_call import NetCall

HOSTILE = (float("nan"), float("inf"), -float("inf"), 1e-40)
"""Put into one element of each floating-point argument, one kind at a time; the last is a denormal
in float32."""

HOSTILE_INDICES = (-1, 2**32 + 1)
"""Put into one element of each int32 and int64 argument: none, and one in the lower 32 bits."""


def fresh_tensors(call: NetCall, seed: int, floats_only: bool = False) -> list[torch.Tensor]:
    """Tensors for another call: floats of the mean and deviation of the example's, whole numbers
    within its range. What has few distinct values, such as a mask, keeps them in another order.
    With `floats_only` all but floats stay as they are.
    """
    generator = torch.Generator().manual_seed(seed)
    return [
        tensor.clone()
        if floats_only and not tensor.is_floating_point()
        else _fresh(tensor, generator)
        for tensor in call.tensors()
    ]


def hostile_tensors(
    call: NetCall, seed: int, bound: float
) -> Iterator[tuple[float, list[torch.Tensor]]]:
    """Fresh tensors with one hostile value each in all floating-point arguments, and such that are
    multiplied so that their largest magnitude is the bound.
    """
    if not any(tensor.is_floating_point() and tensor.numel() for tensor in call.tensors()):
        return
    for value in HOSTILE:
        generator = torch.Generator().manual_seed(seed)
        tensors = fresh_tensors(call, seed)
        for tensor in tensors:
            if tensor.is_floating_point() and tensor.numel():
                place = int(torch.randint(tensor.numel(), (), generator=generator))
                tensor[_index(tensor, place)] = value
        yield value, tensors
    yield bound, [_up_to(bound, tensor) for tensor in fresh_tensors(call, seed)]


def hostile_indices(call: NetCall, seed: int) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """Fresh tensors with one whole number each that is hardly an index of anything."""
    if not any(may_index(tensor) for tensor in call.tensors()):
        return
    for value in HOSTILE_INDICES:
        generator = torch.Generator().manual_seed(seed)
        tensors = fresh_tensors(call, seed)
        for tensor in tensors:
            if may_index(tensor):
                place = int(torch.randint(tensor.numel(), (), generator=generator))
                tensor[_index(tensor, place)] = min(value, torch.iinfo(tensor.dtype).max)
        yield value, tensors


def drawn_within(
    call: NetCall, bounds: Sequence[tuple[int, int] | None], seed: int
) -> list[torch.Tensor]:
    """Fresh tensors whose whole numbers are drawn within bounds, both of which occur: in the same
    places of all tensors, or, with an odd seed, one's smallest where the next has its largest.
    """
    generator = torch.Generator().manual_seed(seed)
    tensors = fresh_tensors(call, seed)
    place = int(torch.randint(2**31, (), generator=generator))
    for number, (tensor, ends) in enumerate(zip(tensors, bounds, strict=True)):
        if ends is not None:
            numbers = torch.randint(ends[0], ends[1] + 1, (tensor.numel(),), generator=generator)
            first = place % tensor.numel()
            numbers[first - 1], numbers[first] = ends if number * seed % 2 == 0 else ends[::-1]
            tensor.copy_(numbers.reshape(tensor.shape))
    return tensors


def with_number(tensors: list[torch.Tensor], number: int, value: int) -> list[torch.Tensor]:
    """Tensors of which one, by its number, holds a value in its first place."""
    tensor = tensors[number]
    tensor[(0,) * tensor.ndim] = min(value, torch.iinfo(tensor.dtype).max)
    return tensors


def may_index(tensor: torch.Tensor) -> bool:
    """Return whether a tensor holds whole numbers of which torch takes indices."""
    return tensor.dtype in (torch.int32, torch.int64) and bool(tensor.numel())


def _up_to(bound: float, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of floats that is multiplied so that its largest magnitude is the bound, or the
    largest that its dtype has.
    """
    if not tensor.is_floating_point() or not tensor.numel() or not bool(tensor.isfinite().all()):
        return tensor
    most = min(bound, torch.finfo(tensor.dtype).max)
    largest = float(tensor.abs().max())
    return tensor * (most / largest) if largest else tensor


def _index(tensor: torch.Tensor, place: int) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(tensor.shape):
        index.insert(0, place % size)
        place //= size
    return tuple(index)


def _fresh(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    values = tensor.detach().to("cpu")
    if values.numel() == 0:
        return tensor.clone()
    if values.dtype is torch.bool or values.is_complex() or _is_mask(values):
        order = torch.randperm(values.numel(), generator=generator)
        drawn = values.reshape(-1)[order].reshape(values.shape)
    elif values.is_floating_point():
        drawn = torch.randn(values.shape, generator=generator) * float(values.float().std(False))
        drawn = drawn + float(values.float().mean())
    else:
        low, high = int(values.min()), int(values.max())
        drawn = torch.randint(low, high + 1, values.shape, generator=generator)
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return fresh.copy_(drawn).to(tensor.device)


def _is_mask(values: torch.Tensor) -> bool:
    """Return whether a tensor has few values, or such that a mean says nothing of them."""
    if values.is_floating_point() and not bool(values.isfinite().all()):
        return True
    sample = values.reshape(-1)[:4096]
    return values.numel() > 8 and sample.unique().numel() <= 2
