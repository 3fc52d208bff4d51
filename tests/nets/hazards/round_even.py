"""Levels found by rounding: halves go to the even neighbour, as in 0.5 -> 0 and 2.5 -> 2."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Levels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.table = nn.Embedding(64, 8)

    def forward(self, x):
        levels = torch.round(x)
        steps = torch.round(x * 2) / 2
        places = (levels.long() + 32).clamp(0, 63)
        return levels, steps, self.tower(self.table(places)), x.ceil() - x.floor()


def make():
    return Levels().eval()


def example():
    return (torch.tensor([[1.2, 2.7, 3.1, 4.9], [5.3, 6.8, 7.1, 8.7]]),)


def calls():
    halves = torch.arange(-4, 4, dtype=torch.float32).reshape(2, 4)
    yield "halves", (halves + 0.5,)
    yield "quarters", (halves / 4,)
    yield "just below halves", (torch.nextafter(halves + 0.5, torch.full((2, 4), -100.0)),)
    yield "beyond 2^23", (8388608.0 + halves.abs() * 2 + 1,)
    yield "large", (1e20 * halves.sign(),)
