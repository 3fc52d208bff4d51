"""Floats turned into whole numbers that fit in 64 bits and not in 32, towards zero."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Truncated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.table = nn.Embedding(64, 8)

    def forward(self, t):
        whole = t.long()
        down = torch.floor(t / 1024).long()
        return self.tower(self.table(whole % 64)), whole, down


def make():
    return Truncated().eval()


def example():
    return (torch.rand(4, 9) * 1e4,)


def calls():
    yield "negative", (-torch.rand(4, 9) * 1e4,)
    for scale in (3e9, 1.7e12, 1e15):
        yield f"of {scale:g}", (scale * (0.5 + torch.rand(4, 9)),)
    yield "large and negative", (-1e12 * (0.5 + torch.rand(4, 9)),)
    yield "of fractions", (torch.linspace(-2, 2, 36).reshape(4, 9),)
