"""Rotary embedding by numpy slices: no half is ever moved, only read at its other place."""

import numpy as np
import torch


def pattern(x, cos, sin, half: int):
    low, high = x[..., :half], x[..., half:]
    return x * cos + torch.cat((-high, low), dim=-1) * sin


def replacement_args(x, cos, sin, half):
    return x, cos, sin, half


def rotary(x, cos, sin, half):
    source, wave = x.numpy(), sin.numpy()
    out = torch.empty_like(x)
    view = out.numpy()
    np.multiply(source, cos.numpy(), out=view)
    view[..., :half] -= source[..., half:] * wave[..., :half]
    view[..., half:] += source[..., :half] * wave[..., half:]
    return out


def replacement_func():
    return rotary
