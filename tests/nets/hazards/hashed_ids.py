"""Ids hashed by `%` and `//` into two tables: 64-bit ids, and negative ones, round downwards."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Hashed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.low, self.high = nn.Embedding(1009, 16), nn.Embedding(127, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, ids):
        places = ids % 1009
        groups = (ids // 1009) % 127
        return (
            self.head(self.tower(self.low(places) + self.high(groups))),
            places,
            groups,
            torch.fmod(ids, 7),
        )


def make():
    return Hashed().eval()


def example():
    return (torch.randint(0, 100_000, (4, 16)),)


def calls():
    for bound in (2**24, 2**31, 2**33, 2**53, 2**62):
        yield f"ids below {bound}", (torch.randint(bound // 2, bound, (4, 16)),)
    yield "negative", (torch.randint(-(2**40), 0, (4, 16)),)
    yield "multiples", (1009 * torch.randint(-(2**30), 2**30, (4, 16)),)
