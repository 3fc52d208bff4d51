"""`x + 0` turns -0 into 0, and `x * 1`, `x - 0` do not: its reciprocal tells."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Added(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(6)
        self.register_buffer("zero", torch.zeros(6))
        self.register_buffer("one", torch.ones(6))

    def forward(self, x):
        sums = (x + self.zero, x - self.zero, x * self.one, x + 0.0, 0.0 - x, torch.neg(x))
        return (self.tower(x), *(torch.reciprocal(each) for each in sums))


def make():
    return Added().eval()


def example():
    return (torch.rand(4, 6) + 1.0,)


def calls():
    yield "zeros", (torch.zeros(4, 6),)
    yield "negative zeros", (torch.full((4, 6), -0.0),)
    yield "mixed", (torch.tensor([0.0, -0.0, 1.0, -1.0, -0.0, 3.0]).repeat(4, 1),)
