"""Maxima and minima of rows with their places, and places of maxima of whole numbers."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Extremes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        self.table = nn.Embedding(18, 4)

    def forward(self, x, n):
        high, low, column = x.max(-1), x.min(-1), x.max(0)
        whole = n.max(-1)
        return (
            high.values,
            high.indices,
            low.indices,
            column.indices,
            whole.values,
            whole.indices,
            n.argmin(0),
            self.tower(self.table(high.indices)),
        )


def make():
    return Extremes().eval()


def example():
    return torch.rand(7, 18), torch.randperm(126).reshape(7, 18)


def calls():
    n = torch.randperm(126).reshape(7, 18)
    yield "zeros", (torch.zeros(7, 18), n * 0)
    yield "levels", (torch.randint(-2, 2, (7, 18)).float(), torch.randint(-2, 2, (7, 18)))
    yield "close numbers", (torch.rand(7, 18), n + 2**53)
    x = torch.rand(7, 18)
    x[:, 5] = x[:, 11] = float("nan")
    yield "two NaN a row", (x, n)
    yield "infinite", (torch.full((7, 18), -float("inf")), -n)
