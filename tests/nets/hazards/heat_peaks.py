"""Key points: the largest peaks of a heat map that saturates, so that many are equal."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Peaks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(12)
        self.gain = nn.Parameter(torch.tensor(4.0))

    def forward(self, heat):
        heat = F.relu6(heat * self.gain)
        peaks = torch.where(F.max_pool2d(heat, 3, 1, 1) == heat, heat, torch.zeros_like(heat))
        scores, places = peaks.flatten(2).topk(5)
        best, place = heat.flatten(2).max(-1)
        width = heat.shape[-1]
        points = torch.stack([places % width, places // width], -1)
        return self.tower(peaks), scores, points, best, place % width, place // width


def make():
    return Peaks().eval()


def example():
    return (torch.rand(1, 3, 12, 12) + 0.1,)


def calls():
    yield "black", (torch.zeros(1, 3, 12, 12),)
    yield "white", (torch.full((1, 3, 12, 12), 9.0),)
    yield "saturated", (torch.randn(1, 3, 12, 12) * 5,)
    heat = torch.zeros(1, 3, 12, 12)
    heat[0, 0, 3, 4] = heat[0, 0, 9, 2] = heat[0, 1, 11, 11] = 1.0
    yield "few peaks", (heat,)
    heat = torch.rand(1, 3, 12, 12)
    heat[0, 1, 4, 4] = float("nan")
    yield "a NaN", (heat,)
