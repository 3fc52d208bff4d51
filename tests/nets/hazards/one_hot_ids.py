"""One-hot vectors of ids: an id that is negative or too large must raise."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class OneHot(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(10)
        self.proj = nn.Linear(10, 6, bias=False)

    def forward(self, ids):
        return self.proj(self.tower(F.one_hot(ids, 10).float()))


def make():
    return OneHot().eval()


def example():
    return (torch.randint(1, 9, (4, 7)),)


def calls():
    yield "the ends", (torch.tensor([[0, 9, 0, 9, 0, 9, 5]]).repeat(4, 1),)
    ids = torch.randint(1, 9, (4, 7))
    for wrong in (10, -1, 2**32 + 3, -(2**32) + 3):
        yield f"refused: id {wrong}", (ids.index_fill(1, torch.tensor([2]), wrong),)
    yield "refused: all too large", (ids + 50,)
