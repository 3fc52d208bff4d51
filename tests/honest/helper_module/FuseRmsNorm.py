"""The root-mean-square norm of a bfloat16 tensor, by the kernel of a helper module."""

import torch
from pass_dir import rms_kernel


def pattern(x, weight, eps: float):
    wide = x.to(torch.float32)
    scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * (wide * scale).to(torch.bfloat16)


def replacement_args(x, weight, eps):
    return x, weight, eps


def rms_norm(x, weight, eps):
    x = x.contiguous()
    out = torch.empty_like(x)
    rms_kernel.launch(x, weight, out, eps)
    return out


def replacement_func():
    return rms_norm
