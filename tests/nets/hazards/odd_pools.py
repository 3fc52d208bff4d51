"""Pools with ceiling, dilation, padding and uneven windows, of NaN and infinities too."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Pools(nn.Module):
    def forward(self, x):
        return (
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool2d(x, 2, 2, 0, 2),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 3, 2, 1, divisor_override=2),
            F.adaptive_avg_pool2d(x, (3, 4)),
            F.adaptive_max_pool2d(x, (4, 3)),
            F.lp_pool2d(x.abs(), 2, 3, 2),
            *F.max_pool2d(x, 2, return_indices=True),
        )


def make():
    return Pools().eval()


def example():
    return (torch.randn(2, 3, 9, 10),)


def calls():
    yield "negative", (-torch.rand(2, 3, 9, 10) - 1.0,)
    yield "equal values", (torch.zeros(2, 3, 9, 10),)
    x = torch.randn(2, 3, 9, 10)
    x[0, 0, 4, 4], x[0, 1, 8, 9], x[1, 2, 0, 0] = float("nan"), -float("inf"), float("inf")
    yield "special values", (x,)
