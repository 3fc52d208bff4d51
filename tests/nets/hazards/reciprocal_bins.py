"""Bins found by dividing by 41, 49 and 3: exact multiples start a bin, so no reciprocal will do."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Bins(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        self.register_buffer("width", torch.tensor([41.0, 47.0, 49.0, 55.0, 61.0, 82.0, 3.0, 97.0]))
        self.table = nn.Embedding(512, 4)

    def forward(self, x):
        by_width = torch.floor(x / self.width)
        by_number = (x / 41.0).floor()
        places = (x / 49.0).long().clamp(0, 511)
        return by_width, by_number, self.tower(self.table(places)), torch.ceil(x / 47.0)


def make():
    return Bins().eval()


def example():
    return (torch.rand(6, 8) * 30 + 5.5,)


def calls():
    widths = torch.tensor([41.0, 47.0, 49.0, 55.0, 61.0, 82.0, 3.0, 97.0])
    for factor in (1, 2, 5, 7, 23):
        yield f"{factor} widths", ((factor * widths).repeat(6, 1),)
    yield "multiples of 41", ((41.0 * torch.arange(48)).reshape(6, 8),)
    yield "multiples of 49", ((49.0 * torch.arange(48)).reshape(6, 8),)
