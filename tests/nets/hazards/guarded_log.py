"""Branches chosen by where: what is NaN or infinite on the other branch leaves no trace."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Guarded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(9)
        self.low = nn.Parameter(torch.tensor(-5.0))
        self.out = nn.Linear(9, 3)

    def forward(self, x):
        logs = torch.where(x > 0, x.log(), self.low)
        roots = torch.where(x < 0, torch.zeros_like(x), x.sqrt())
        inverse = torch.where(x == 0, torch.ones_like(x), 1 / x)
        mixed = logs.masked_fill(x.isinf(), 2.0)
        return self.out(self.tower(logs)), roots, inverse, mixed


def make():
    return Guarded().eval()


def example():
    return (torch.rand(5, 9) + 0.5,)


def calls():
    yield "zeros", (torch.zeros(5, 9),)
    yield "negative", (-torch.rand(5, 9),)
    yield "mixed", (torch.tensor([0.0, -0.0, -1.0, 1.0, 2.0, -2.0, 1e-30, 0.0, 5.0]).repeat(5, 1),)
    yield "infinities", (torch.tensor([float("inf"), -float("inf"), 1.0]).repeat(5, 3),)
