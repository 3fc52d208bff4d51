"""NaN, infinities and floats beyond 64 bits turned into whole numbers: as in eager PyTorch."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Unfit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.table = nn.Embedding(64, 8)

    def forward(self, x):
        places = x.long().clamp(0, 63)
        return self.tower(self.table(places)), places, x.long() > 0


def make():
    return Unfit().eval()


def example():
    return (torch.rand(4, 16) * 60 + 1,)


def calls():
    yield "beyond the table", (torch.randn(4, 16) * 1e4,)
    yield "NaN", (torch.full((4, 16), float("nan")),)
    yield "infinity", (torch.full((4, 16), float("inf")),)
    yield "minus infinity", (torch.full((4, 16), -float("inf")),)
    yield "of 1e30", (torch.full((4, 16), 1e30),)
