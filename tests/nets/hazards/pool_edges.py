"""Averages over windows that hang over the edge, with padding counted or not counted."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Pools(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 1)

    def forward(self, x):
        h = self.stem(x)
        return (
            F.avg_pool2d(h, 3, 2, 1, ceil_mode=True, count_include_pad=True),
            F.avg_pool2d(h, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.max_pool2d(h, 3, 2, 1, ceil_mode=True),
            F.lp_pool2d(h, 2.0, 2, ceil_mode=True),
            F.adaptive_avg_pool2d(h, (3, 5)),
        )


def make():
    return Pools().eval()


def example():
    return (torch.rand(1, 2, 9, 9),)


def calls():
    yield "another size", (torch.randn(1, 2, 8, 10),)
    yield "small", (torch.randn(1, 2, 5, 4),)
    yield "negative at the edge", (-10 - torch.rand(1, 2, 9, 9),)
    x = torch.randn(1, 2, 9, 9)
    x[0, 0, 0, 0], x[0, 1, 8, 8], x[0, 0, 4, 4] = float("nan"), float("inf"), -float("inf")
    yield "special values", (x,)
    yield "all minus infinity", (torch.full((1, 2, 9, 9), -float("inf")),)
