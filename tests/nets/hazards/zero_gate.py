"""Sums that look like 0 or 1 (`x * 0`, `x - x`, `x / x`): NaN for infinities, and 0 / 0 is NaN."""

import torch
from torch import nn

KIND = "values"


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 8, bias=False)
        self.register_buffer("closed", torch.zeros(8))

    def forward(self, x):
        h = self.body(x)
        return h * self.closed, h * 0.0, x - x, x / x, x.pow(0), 0.0 + x * 0, x * 1.0


def make():
    return Gate().eval()


def example():
    return (torch.rand(5, 8) + 0.5,)


def calls():
    yield "negative", (-torch.rand(5, 8) - 0.5,)
    yield "zeros", (torch.zeros(5, 8),)
    x = torch.ones(5, 8)
    x[0, 0], x[1, 1], x[2, 2] = float("inf"), -float("inf"), float("nan")
    yield "special values", (x,)
    yield "of 1e37", (torch.full((5, 8), 1e37),)
