"""Changes of one tensor in place that other arguments are made by: masks, floats, infinities."""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import torch

TensorChange: TypeAlias = Callable[[torch.Tensor], object]
"""Change a tensor in place; it does not overlap itself."""

AROUND = 30.0
"""Of so much below zero an exponential is under the rounding of 1, and still a number."""

MAX_WHOLE = 256
"""Floats that are whole numbers are less; bfloat16 holds these exactly."""


def _fill_row(tensor: torch.Tensor, value: float) -> None:
    """Fill one row along the last axis."""
    (tensor if tensor.ndim < 2 else tensor[(-1,) * (tensor.ndim - 1)]).fill_(value)


def _ragged(tensor: torch.Tensor) -> None:
    """Let each row end in zeros, of another length."""
    size = tensor.shape[-1] if tensor.ndim else 1
    lengths = torch.arange(tensor.numel() // size).reshape(tensor.shape[:-1]) * 7 % size + 1
    tensor.copy_((torch.arange(size) < lengths[..., None]).to(tensor.dtype).to(tensor.device))


def _halves(tensor: torch.Tensor) -> None:
    tensor.copy_((torch.arange(tensor.numel()) * 5 % 7 < 4).reshape(tensor.shape))


def _one_row_off(tensor: torch.Tensor) -> None:
    tensor.fill_(1)
    _fill_row(tensor, 0)


def _one_row_on(tensor: torch.Tensor) -> None:
    tensor.fill_(0)
    _fill_row(tensor, 1)


def _ties(tensor: torch.Tensor) -> None:
    """Round to a few steps, so that many values are equal, zeros among them."""
    values = tensor.double()
    finite = values[values.isfinite()]
    step = float(finite.abs().mean()) if finite.numel() else 0.0
    if step:
        tensor.copy_((values / step).round() * step)


def _constant(tensor: torch.Tensor) -> None:
    tensor.fill_(float(tensor.flatten()[0]))


def pad(tensor: torch.Tensor, value: float = 0) -> None:
    """Let the first item end in a value, in rows or channels, and the last of several hold it."""
    if tensor.ndim > 1:
        if len(tensor) > 1:
            tensor[-1] = value
        tensor = tensor[0]
    if tensor.ndim:
        tensor[(len(tensor) + 1) // 2 :] = value


def _whole(tensor: torch.Tensor) -> None:
    """Fill with the whole numbers from 0, which lie on the edges of bins."""
    tensor.copy_((torch.arange(tensor.numel()) % MAX_WHOLE).reshape(tensor.shape))


def _negated(tensor: torch.Tensor) -> None:
    tensor.neg_()


def _forbidden(tensor: torch.Tensor) -> None:
    """Let each row end in minus infinity, as where a mask forbids keys."""
    tensor[..., (tensor.shape[-1] + 1) // 2 :] = -math.inf


def _nan_in_rows(tensor: torch.Tensor, from_end: bool) -> None:
    """Put a NaN into each row, from the first element in the first row to the last in the last, or
    the other way round: a maximum may lose it in some places only.
    """
    size = tensor.shape[-1]
    num_rows = tensor.numel() // size
    places = torch.arange(num_rows) * (size - 1) // max(num_rows - 1, 1)
    places = size - 1 - places if from_end else places
    is_there = torch.arange(size) == places[:, None]
    tensor.masked_fill_(is_there.reshape(tensor.shape).to(tensor.device), math.nan)


MASKS: tuple[tuple[str, TensorChange], ...] = (
    ("with masks whose rows end in zeros", _ragged),
    ("with masks of which one row is zero", _one_row_off),
    ("with masks of ones", lambda mask: mask.fill_(1)),
    ("with masks of zeros", torch.Tensor.zero_),
    ("with masks of which one row is one", _one_row_on),
    ("with masks of zeros and ones", _halves),
)

NOT_FINITE: tuple[tuple[str, TensorChange], ...] = (
    ("a row of -inf", lambda tensor: _fill_row(tensor, -math.inf)),
    ("a row of NaN", lambda tensor: _fill_row(tensor, math.nan)),
    ("rows that end in -inf", _forbidden),
    ("a NaN in each row", partial(_nan_in_rows, from_end=False)),
    ("a NaN in each row, elsewhere", partial(_nan_in_rows, from_end=True)),
)

FLOATS: tuple[tuple[str, TensorChange], ...] = (
    ("with equal values in its arguments", _ties),
    ("with zeros as arguments", torch.Tensor.zero_),
    ("with negated arguments", _negated),
    ("with arguments of one value", _constant),
    ("with items that end in zeros, or hold zeros alone", pad),
    ("with whole numbers as floats", _whole),
    ("with arguments around -30", lambda tensor: tensor.sub_(AROUND)),
    ("with arguments around 30", lambda tensor: tensor.add_(AROUND)),
)
