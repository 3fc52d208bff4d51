"""Masks added and multiplied as they are: `+` is or, `*` is and, and True + 1 is 2."""

import torch
from torch import nn

KIND = "values"


class Masks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(12, 3)

    def forward(self, a, b, x):
        either = a + b
        return self.out(x * either), either, a * b, a + 1, a * 2.5, x.masked_fill(a * b, 0.0)


def make():
    return Masks().eval()


def example():
    return (
        torch.ones(4, 12, dtype=torch.bool),
        torch.zeros(4, 12, dtype=torch.bool),
        torch.rand(4, 12),
    )


def calls():
    x = torch.randn(4, 12)
    true, false = torch.ones(4, 12, dtype=torch.bool), torch.zeros(4, 12, dtype=torch.bool)
    yield "mixed", (x > 0.5, x < 0.7, x)
    yield "all true", (true, true, x)
    yield "all false", (false, false, x / 0)
