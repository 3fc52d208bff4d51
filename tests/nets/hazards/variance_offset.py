"""Deviations of values far from 0: of 10000 + x as of x, as two passes over the values give."""

import torch
from torch import nn

KIND = "values"


class Spread(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(64)
        self.scale = nn.Parameter(torch.rand(1) + 0.5)

    def forward(self, x):
        mean, deviation = x.mean(-1), x.std(-1)
        return deviation * self.scale, x.var(-1, unbiased=False), self.norm(x), mean


def make():
    return Spread().eval()


def example():
    return (torch.rand(6, 64),)


def calls():
    steps = torch.arange(64.0).repeat(6, 1)
    for offset in (64.0, 4096.0, -16384.0):
        yield f"steps at {offset:g}", (steps[:, torch.randperm(64)] + offset,)
    yield "constant", (torch.full((6, 64), 1024.0),)
