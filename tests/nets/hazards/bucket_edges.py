"""Buckets of values on the edges, outside, NaN and infinite, closed on the left or the right."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Buckets(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.register_buffer("edges", torch.tensor([-2.0, 0.0, 1.0, 1.0, 2.0, 5.0]))
        self.table = nn.Embedding(7, 8)

    def forward(self, x):
        left = torch.bucketize(x, self.edges)
        right = torch.bucketize(x, self.edges, right=True)
        short = torch.bucketize(x, self.edges, right=True, out_int32=True)
        return self.tower(self.table(left) - self.table(right)), left, right, short


def make():
    return Buckets().eval()


def example():
    return (torch.rand(5, 8) * 0.8 + 1.1,)


def calls():
    yield "on the edges", (torch.randint(-3, 7, (5, 8)).float(),)
    yield "outside", (100 * torch.randn(5, 8),)
    yield "NaN", (torch.full((5, 8), float("nan")),)
    yield "infinities", (torch.tensor([float("inf"), -float("inf")]).repeat(5, 4),)
    yield "beside the edges", (torch.nextafter(torch.ones(5, 8), torch.zeros(5, 8)),)
