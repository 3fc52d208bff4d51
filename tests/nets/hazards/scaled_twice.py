"""Two scales in a row, together 1: infinite or 0 where the first overflows or underflows."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class ScaledTwice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.register_buffer("up", torch.full((8,), 2.0**100))
        self.register_buffer("down", torch.full((8,), 2.0**-100))
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        x = x.float()
        high = (x * 2.0**100) * 2.0**-100
        low = (x * self.down) * self.up
        both = (x * self.up) / self.up
        return high, low, both, self.out(self.tower(x))


def make():
    return ScaledTwice().eval()


def example():
    return (torch.rand(4, 8) + 0.5,)


def calls():
    yield "of 1e10", (1e10 * (torch.rand(4, 8) + 0.5),)
    yield "of 1e-20", (1e-20 * (torch.rand(4, 8) + 0.5),)
    yield "of 1e-12", (1e-12 * (torch.rand(4, 8) + 0.5),)
    yield "zeros", (torch.zeros(4, 8),)
