"""Norms of several orders: of NaN, infinite, zero and large vectors."""

import torch
from torch import nn

KIND = "values"


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(9) + 0.5)

    def forward(self, x):
        x = x * self.scale
        norm = torch.linalg.vector_norm
        orders = (1, 2, 3)
        return (
            *(norm(x, order, dim=-1) for order in orders),
            x.square().sum().sqrt(),
            x.abs().amax(-1),
        )


def make():
    return Norms().eval()


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
    yield "of 1e10", (1e10 * torch.randn(6, 9),)
    yield "of 1e-10", (1e-10 * torch.randn(6, 9),)
