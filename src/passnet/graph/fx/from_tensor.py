"""What a graph records of a tensor: shape, dtype, device, and statistics of its values."""

import math
from collections.abc import Callable
from typing import TypeAlias

import torch

from passnet.errors import CaptureError
from passnet.graph.spec import TensorSpec
from passnet.graph.text.meta import DTYPE_BYTES

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
    tensor = value.detach()
    is_real = tensor.dtype.is_floating_point
    if is_fake(tensor):
        values = sample(tensor) if sample is not None else None
        if values is not None:
            mean, std = _mean_and_std(values.double())
    elif tensor.numel() and not tensor.dtype.is_complex:
        if is_real:
            step = max(1, tensor.numel() // MAX_COUNTED) | 1  # odd, lest it meet a power of two
            mean, std = _mean_and_std(tensor.reshape(-1)[::step].double())
        else:
            low, high = int(tensor.min()), int(tensor.max())
        if tensor.dim() == 0 or (not is_real and tensor.numel() <= MAX_DATA_ELEMENTS):
            data = tuple(tensor.reshape(-1).tolist())
            if is_real and not math.isfinite(data[0]):
                data = None  # records hold no infinity
    keys = ("name", "shape", "dtype", "device", "mean", "std", "data")
    if low is not None:
        keys += ("min_val", "max_val")
    return TensorSpec(name, shape, dtype, str(value.device), mean, std, low, high, data, keys=keys)


def _mean_and_std(values: torch.Tensor) -> tuple[float | None, ...]:
    """Both; None for one that is not finite."""
    numbers = (float(values.mean()), float(values.std(correction=0)))
    return tuple(number if math.isfinite(number) else None for number in numbers)


def is_fake(value: torch.Tensor) -> bool:
    """Whether a tensor has a shape but no values."""
    from torch._subclasses.fake_tensor import FakeTensor

    return isinstance(value, FakeTensor) or value.is_meta
