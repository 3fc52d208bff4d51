"""Pooled maxima with their places, put back by max_unpool: of NaN and of ties."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "indices"


class Unpool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 4, 1, bias=False)

    def forward(self, x):
        high, places = F.max_pool2d(torch.relu(self.stem(x)), 2, return_indices=True)
        raw = F.max_pool2d(x, 3, 1, 1)
        return F.max_unpool2d(high, places, 2), places, raw


def make():
    return Unpool().eval()


def example():
    return (torch.rand(1, 2, 8, 8),)


def calls():
    yield "negative", (-torch.rand(1, 2, 8, 8),)
    yield "zeros", (torch.zeros(1, 2, 8, 8),)
    x = torch.randn(1, 2, 8, 8)
    x[0, 0, 3, 3], x[0, 1, 0, 7] = float("nan"), float("inf")
    yield "a NaN and an infinity", (x,)
    yield "all minus infinity", (torch.full((1, 2, 8, 8), -float("inf")),)
    yield "all NaN", (torch.full((1, 2, 8, 8), float("nan")),)
