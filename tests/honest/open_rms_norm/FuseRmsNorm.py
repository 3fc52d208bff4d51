"""The spelled-out norm is torch's own rms_norm, which also computes in float32 inside."""

import torch
import torch.nn.functional as F


def pattern(x, weight, eps: float, dtype: torch.dtype):
    wide = x.to(torch.float32)
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * (wide * scale).to(dtype)


def replacement_args(x, weight, eps, dtype):
    return x, weight, eps


def rms_norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight, eps)


def replacement_func():
    return rms_norm
