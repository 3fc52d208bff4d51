"""Ids clamped to a vocabulary, or sent to an unknown word: 2^32 + 3 is no word 3."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.table = nn.Embedding(100, 16)

    def forward(self, ids):
        inside = ids.clamp(0, 99)
        known = torch.where((ids >= 0) & (ids < 100), ids, torch.full_like(ids, 1))
        capped = torch.minimum(ids, torch.tensor(99)).clamp(min=0)
        return self.tower(self.table(inside)), self.table(known), self.table(capped), ids > 2**31


def make():
    return Clamped().eval()


def example():
    return (torch.randint(2, 100, (4, 12)),)


def calls():
    ids = torch.randint(2, 100, (4, 12))
    yield "some beyond", (ids * 3 - 50,)
    for power in (31, 32, 33, 62):
        yield f"beyond by 2^{power}", (ids + 2**power,)
        yield f"below by 2^{power}", (ids - 2**power,)
