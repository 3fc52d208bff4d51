"""Winners found by comparing a row with its own maximum: ties win together, and NaN never does."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Winners(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(20)
        self.proj = nn.Linear(12, 20)
        self.out = nn.Linear(20, 4, bias=False)

    def forward(self, x):
        h = torch.relu(self.proj(x))
        won = (h == h.amax(-1, keepdim=True)).float()
        shares = won / won.sum(-1, keepdim=True)
        return won, shares, won.sum(-1), self.out(self.tower(won)), x == x.amax(-1, keepdim=True)


def make():
    return Winners().eval()


def example():
    return (torch.rand(6, 12),)


def calls():
    yield "fresh", (torch.randn(6, 12),)
    yield "zeros", (torch.zeros(6, 12),)
    yield "large", (1e4 * torch.randn(6, 12),)
    x = torch.randn(6, 12)
    x[1, 1] = float("nan")
    x[2] = -1e6
    yield "a NaN", (x,)
    yield "levels", (torch.randint(-1, 2, (6, 12)).float(),)
