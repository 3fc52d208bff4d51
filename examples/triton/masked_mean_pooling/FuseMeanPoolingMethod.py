"""Mean pooling with the sum as a method: the mask becomes float32."""

import torch
from pass_dir.kernel import masked_mean

guards = (
    "hidden: float32 or bfloat16 or float16",
    "hidden, mask: contiguous, not empty",
    "hidden: shape (batch, length, width)",
    "mask: shape (batch, length)",
)


def guard(hidden, size):
    return tuple(hidden.shape) == tuple(size)


def pattern(hidden, mask, size: tuple, least: float):
    kept = mask.unsqueeze(-1).expand(size).float()
    return (hidden * kept).sum(1) / torch.clamp(kept.sum(1), min=least)


def replacement_args(hidden, mask, size, least):
    return hidden, mask, least, torch.float32


def replacement_func():
    return masked_mean
