"""Rows taken by indexing: negative places count from the end, and those too far must raise."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Indexed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(6)
        self.rows = nn.Parameter(torch.randn(9, 6))

    def forward(self, x, places):
        flat = places.flatten()
        return (
            self.tower(self.rows[places]),
            x[flat, flat],
            x[:, flat].sum(-1),
            torch.take(x, places),
            self.rows[flat][:, [1, -1]],
        )


def make():
    return Indexed().eval()


def example():
    return torch.rand(9, 9), torch.randint(1, 8, (2, 5))


def calls():
    x, places = torch.randn(9, 9), torch.randint(1, 8, (2, 5))
    yield "negative", (x, -places)
    yield "the ends", (x, torch.tensor([[0, -1, 8, -9, 4], [-1, -1, -1, 0, 0]]))
    for wrong in (9, -10, 2**32, -(2**32)):
        yield f"refused: place {wrong}", (x, places.index_fill(1, torch.tensor([2]), wrong))
