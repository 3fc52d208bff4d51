"""What a graph records of a tensor: shape, dtype, device, and statistics of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch

from passnet.errors import CaptureError
from passnet.graph.meta import DTYPE_BYTES
from passnet.graph.spec import TensorSpec

MAX_DATA_ELEMENTS = 64
"""Integer arguments of up to this many elements are recorded with their values."""

MAX_COUNTED = 2**18
"""Mean and standard deviation of a float argument with more elements are those of about so many."""

Sampler: TypeAlias = Callable[[torch.Tensor], torch.Tensor | None]
"""Gives some values of a tensor that has none of its own, or None."""


def spec_from_tensor(name: str, value: torch.Tensor, sample: Sampler | None = None) -> TensorSpec:
    """What is recorded of a tensor: shape, dtype, device, and statistics where it has values.

    Floats get mean and standard deviation, integers their range and, when few, their values; a
    scalar always keeps its value. The statistics of a tensor without values are those of its
    sample, if it has one.
    """
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPE_BYTES:
        raise CaptureError(f"argument {name} has dtype {dtype}, which graphs cannot hold")
    shape = tuple(int(size) for size in value.shape)
    mean = std = low = high = data = None
    plain = value.detach()
    few = plain.numel() <= MAX_DATA_ELEMENTS and not plain.dtype.is_floating_point
    if is_fake(plain):
        some = sample(plain) if sample is not None else None
        if some is not None:
            mean, std = _number(some.double().mean()), _number(some.double().std(correction=0))
    elif plain.numel():
        if plain.dtype.is_floating_point:
            mean, std = _mean_and_std(plain)
        elif not plain.dtype.is_complex:
            low, high = int(plain.min()), int(plain.max())
        if (few or plain.dim() == 0) and not plain.dtype.is_complex:
            data = tuple(plain.reshape(-1).tolist())
    keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
    if low is not None:
        keys += ("min_val", "max_val")
    return TensorSpec(name, shape, dtype, str(value.device), mean, std, low, high, data, keys=keys)


def _mean_and_std(values: torch.Tensor) -> tuple[float | None, float | None]:
    """Both, of an even part of the values where they are many."""
    step = max(1, values.numel() // MAX_COUNTED) | 1  # odd, lest it fall in with a power of two
    wide = values.reshape(-1)[::step].double()
    return _number(wide.mean()), _number(wide.std(correction=0))


def is_fake(value: torch.Tensor) -> bool:
    """Whether a tensor has a shape but no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor) or value.is_meta


def _number(value: torch.Tensor) -> float | None:
    number = float(value)
    return number if number == number and abs(number) != float("inf") else None
