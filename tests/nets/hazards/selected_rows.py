"""Rows selected by index_select: a place out of range must raise, a negative one too."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Selected(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(6)
        self.rows = nn.Parameter(torch.randn(9, 6))

    def forward(self, x, places):
        return self.tower(torch.index_select(self.rows, 0, places)), x.index_select(1, places).sum(
            -1
        )


def make():
    return Selected().eval()


def example():
    return torch.rand(4, 9), torch.randint(1, 8, (5,))


def calls():
    x, places = torch.randn(4, 9), torch.randint(1, 8, (5,))
    yield "the ends", (x, torch.tensor([0, 8, 8, 0, 0]))
    for wrong in (9, -1, 2**32 + 2, -9):
        yield f"refused: place {wrong}", (x, places.index_fill(0, torch.tensor([2]), wrong))
