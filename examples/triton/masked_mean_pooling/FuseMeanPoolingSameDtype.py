"""Mean pooling where the mask takes the dtype of the hidden states."""

import torch
from pass_dir.kernel import masked_mean


def pattern(hidden, mask, size: tuple, least: float, dtype: torch.dtype):
    kept = mask.unsqueeze(-1).expand(size).to(dtype)
    return torch.sum(hidden * kept, 1) / torch.clamp(kept.sum(1), min=least)


def replacement_args(hidden, mask, size, least, dtype):
    return hidden, mask, least, dtype


def replacement_func():
    return masked_mean
