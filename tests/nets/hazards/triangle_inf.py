"""Triangles of a matrix, and padded or dropped parts: 0 there, even if NaN or infinite before."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Triangle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(10, 3)

    def forward(self, x):
        low = x.tril()
        cut = F.pad(x, (-1, 1, -2, 2))
        return self.out(low.nan_to_num(0.0, 1.0, -1.0)), low, x.triu(2), cut


def make():
    return Triangle().eval()


def example():
    return (torch.rand(10, 10),)


def calls():
    for value in (float("nan"), float("inf"), -float("inf")):
        x = torch.randn(10, 10)
        x[0, 9] = x[2, 3] = value
        yield f"{value} above", (x,)
        yield f"{value} on both sides", (x + x.t(),)
    yield "all NaN", (torch.full((10, 10), float("nan")),)
