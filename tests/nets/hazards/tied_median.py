"""Medians, modes and k-th values of rows with ties, with their places."""

import torch
from torch import nn

KIND = "indices"


class Middle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(15))

    def forward(self, x):
        x = x * self.scale
        middle, third, common = x.median(-1), x.kthvalue(3, -1), x.mode(-1)
        return (
            middle.values,
            middle.indices,
            third.values,
            third.indices,
            common.values,
            common.indices,
            x.quantile(0.25, dim=-1, interpolation="nearest"),
        )


def make():
    return Middle().eval()


def example():
    return (torch.rand(6, 15),)


def calls():
    yield "zeros", (torch.zeros(6, 15),)
    yield "three levels", (torch.randint(0, 3, (6, 15)).float(),)
    x = torch.randn(6, 15)
    x[1, 4], x[2, :8], x[3, 3] = float("nan"), float("inf"), -float("inf")
    yield "special values", (x,)
    yield "negative", (-torch.rand(6, 15),)
