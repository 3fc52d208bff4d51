"""Means and sums that skip NaN; a row of nothing else has no mean, and the sum 0."""

import torch
from torch import nn

KIND = "values"


class Skipping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(15) + 0.5)

    def forward(self, x):
        x = x * self.scale
        return x.nanmean(-1), x.nansum(-1), x.nanmean(), x.nansum()


def make():
    return Skipping().eval()


def example():
    return (torch.rand(6, 15),)


def calls():
    yield "none missing", (torch.randn(6, 15),)
    x = torch.randn(6, 15)
    x[0, 3] = x[1, 4:9] = x[2, :14] = float("nan")
    yield "some missing", (x.clone(),)
    x[3] = float("nan")
    yield "a row missing", (x,)
    yield "all missing", (torch.full((6, 15), float("nan")),)
