"""Norms of rare orders: the count of what is not 0, the square of sums of roots, the extremes."""

import torch
from torch import nn

KIND = "values"


class OddNorms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(9))

    def forward(self, x):
        x = x * self.scale
        orders = (0, 0.5, float("inf"), -float("inf"))
        return tuple(torch.linalg.vector_norm(x, order, dim=-1) for order in orders)


def make():
    return OddNorms().eval()


def example():
    return (torch.rand(6, 9) + 0.1,)


def calls():
    yield "negative", (torch.randn(6, 9),)
    x = torch.randn(6, 9)
    x[0] = 0.0
    yield "a zero vector", (x.clone(),)
    x[1, 2], x[2, 3], x[3, 4] = float("nan"), float("inf"), -float("inf")
    x[4, :6] = 0.0
    yield "special values", (x,)
    yield "of 1e-42", (torch.full((6, 9), 1e-42),)
