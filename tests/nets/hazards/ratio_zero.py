"""Ratios whose divisor may be 0: infinite, or NaN for 0 / 0, then capped by clamp."""

import torch
from torch import nn

KIND = "values"


class Ratio(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x, y):
        ratio = x / y
        capped = ratio.clamp(-100, 100)
        return ratio, capped, self.out(capped), torch.log(x) - torch.log(y), torch.addcdiv(x, x, y)


def make():
    return Ratio().eval()


def example():
    return torch.rand(5, 8) + 0.5, torch.rand(5, 8) + 0.5


def calls():
    x, zero = torch.randn(5, 8), torch.zeros(5, 8)
    yield "divided by zero", (x, zero)
    yield "zero by zero", (zero, zero)
    yield "by negative zero", (x, -zero)
    yield "by a small number", (x, torch.full((5, 8), 1e-39))
    yield "infinity by infinity", (zero + float("inf"), zero + float("inf"))
