"""Rounding by adding and subtracting 1.5 * 2^23: two constants that must not be added first."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class MagicRound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.register_buffer("magic", torch.full((8,), 12582912.0))
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        first = (x.float() + 12582912.0) - 12582912.0
        second = (x + self.magic) - self.magic
        return first.int(), second.int(), self.out(self.tower(x))


def make():
    return MagicRound().eval()


def example():
    return (torch.arange(1.0, 33.0).reshape(4, 8),)


def calls():
    yield "fractions", (4 * torch.rand(4, 8),)
    yield "halves", (torch.arange(-16, 16).reshape(4, 8) + 0.5,)
    yield "small", (1e-3 * torch.randn(4, 8),)
