"""Whole numbers divided towards zero by an argument; a divisor of 0 must raise an error."""

import torch
from torch import nn

KIND = "values"


class Binned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 8))

    def forward(self, x, n, width):
        return self.tower(x) + torch.div(n, width, rounding_mode="trunc")


def make():
    return Binned().eval()


def example():
    return torch.randn(5, 8), torch.randint(0, 100, (5, 8)), torch.randint(1, 9, (5, 8))


def calls():
    x, n, width = example()
    yield "negative", (x, -n, width)
    yield "negative widths", (x, n, -width)
    yield "refused: by zero", (x, n, width * 0)
    yield "refused: by zero once", (x, n, width.index_fill(1, torch.tensor([3]), 0))
    yield "fresh", example()
