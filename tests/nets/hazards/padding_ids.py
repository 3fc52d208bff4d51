"""Embeddings with a padding id, a maximum of norms and a mean: ids out of range must raise."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Ids(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.words = nn.Embedding(50, 16, padding_idx=0)
        self.places = nn.Embedding(12, 16)
        self.kinds = nn.Parameter(torch.randn(3, 16))

    def forward(self, ids, kinds):
        places = torch.arange(ids.shape[1])
        h = self.words(ids) + self.places(places) + F.embedding(kinds, self.kinds, padding_idx=-1)
        return self.tower(h).mean(1), self.words.weight[ids]


def make():
    return Ids().eval()


def example():
    return torch.randint(1, 49, (3, 8)), torch.ones(3, 8, dtype=torch.long)


def calls():
    ids, kinds = torch.randint(1, 49, (3, 8)), torch.randint(0, 3, (3, 8))
    yield "padding", (ids.index_fill(1, torch.tensor([6, 7]), 0), kinds)
    yield "the last id", (ids * 0 + 49, kinds)
    yield "padding alone", (ids * 0, kinds * 0 + 2)
    for wrong in (50, -1, 2**32 + 1, -51):
        yield f"refused: id {wrong}", (ids.index_fill(1, torch.tensor([1]), wrong), kinds)
    yield "refused: kind 3", (ids, kinds * 0 + 3)
