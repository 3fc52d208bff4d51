"""Products along a row and survival curves: zeros, overflow, and 0 times infinity."""

import torch
from torch import nn

KIND = "values"


class Products(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(12, 3)

    def forward(self, x):
        alive = (1 - x).cumprod(-1)
        passed = torch.cat([torch.ones_like(x[:, :1]), alive[:, :-1]], -1)
        weights = passed * x
        return weights, x.prod(-1), self.out(weights.nan_to_num(0.0, 1.0, -1.0)), x.exp().prod(-1)


def make():
    return Products().eval()


def example():
    return (0.05 + 0.1 * torch.rand(5, 12),)


def calls():
    yield "zeros", (torch.zeros(5, 12),)
    yield "ones", (torch.ones(5, 12),)
    x = torch.rand(5, 12)
    x[1, 5], x[2, 6], x[3, 7] = 1.0, float("inf"), float("nan")
    x[2, 8] = 1.0
    yield "special values", (x,)
    yield "of 1e5", (torch.full((5, 12), 1e5),)
    yield "of 1e-5", (torch.full((5, 12), 1e-5),)
