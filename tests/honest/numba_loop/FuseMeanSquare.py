"""Plain Python loops under numba.njit, compiled at import for the one signature they serve."""

import numba
import numpy as np
import torch


@numba.njit("void(float32[:,::1], float32[:,::1], float32[::1])")
def rows(x, y, out):
    for r in range(x.shape[0]):
        total = np.float32(0)
        for i in range(x.shape[1]):
            d = x[r, i] - y[r, i]
            total += d * d
        out[r] = total / np.float32(x.shape[1])


def pattern(x, y):
    return (x - y).pow(2).mean(-1)


def replacement_args(x, y):
    return x, y


def mean_square(x, y):
    x, y = x.contiguous(), y.contiguous()
    out = torch.empty(x.shape[:-1], dtype=x.dtype)
    n = x.shape[-1]
    rows(x.view(-1, n).numpy(), y.view(-1, n).numpy(), out.view(-1).numpy())
    return out


def replacement_func():
    return mean_square
