"""The largest four of scores with ties: the values are certain, the places are eager PyTorch's."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class TopFour(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(24)
        self.table = nn.Embedding(24, 8)

    def forward(self, scores):
        high, places = scores.topk(4)
        low = scores.topk(4, largest=False)
        return self.tower(scores), high, places, low.values, low.indices, self.table(places).sum(1)


def make():
    return TopFour().eval()


def example():
    return (torch.rand(5, 24),)


def calls():
    yield "zeros", (torch.zeros(5, 24),)
    yield "two levels", ((torch.rand(5, 24) > 0.5).float(),)
    yield "rounded", ((torch.rand(5, 24) * 3).round(),)
    yield "in pairs", (torch.rand(5, 12).repeat(1, 2),)
    yield "all infinite", (torch.full((5, 24), float("inf")),)
