"""Nearest codes of vectors: equal codes and vectors midway between two take the first."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Codes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        codes = torch.randint(-4, 5, (32, 4)).float()
        codes[16:] = -codes[:16]
        self.codes = nn.Parameter(codes)

    def forward(self, x):
        off = (x.unsqueeze(-2) - self.codes).square().sum(-1)
        places = off.argmin(-1)
        return self.tower(self.codes[places]), places, off.amin(-1), (-off).topk(2).values


def make():
    return Codes().eval()


def example():
    return (torch.rand(12, 4) * 4 + 0.1,)


def calls():
    yield "zeros", (torch.zeros(12, 4),)
    yield "whole", (torch.randint(-3, 4, (12, 4)).float(),)
    yield "halves", (torch.randint(-6, 7, (12, 4)) / 2,)
    yield "NaN", (torch.full((12, 4), float("nan")),)
    yield "far", (torch.full((12, 4), 1e30),)
