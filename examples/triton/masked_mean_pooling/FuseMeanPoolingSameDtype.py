"""Mean pooling where the mask takes the dtype of the hidden states."""

import torch
from pass_dir.kernel import masked_mean

guards = (
    "hidden: float32 or bfloat16 or float16",
    "hidden, mask: contiguous, not empty",
    "hidden: shape (batch, length, width)",
    "mask: shape (batch, length)",
)


def guard(hidden, size, dtype):
    return tuple(hidden.shape) == tuple(size) and dtype == hidden.dtype


def pattern(hidden, mask, size: tuple, least: float, dtype: torch.dtype):
    kept = mask.unsqueeze(-1).expand(size).to(dtype)
    return torch.sum(hidden * kept, 1) / torch.clamp(kept.sum(1), min=least)


def replacement_args(hidden, mask, size, least, dtype):
    return hidden, mask, least, dtype


def replacement_func():
    return masked_mean
