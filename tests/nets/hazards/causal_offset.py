"""Causal attention over ids with a cache position: a mask built by comparing positions."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Decode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.q, self.kv = nn.Linear(16, 16), nn.Linear(16, 32)

    def forward(self, x, cache, position):
        k, v = self.kv(cache).chunk(2, -1)
        allowed = torch.arange(cache.shape[1]) <= position.unsqueeze(-1)
        scores = self.q(x) @ k.mT / 4
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~allowed, lowest).softmax(-1)
        return self.tower(x), weights @ v, allowed.sum(-1)


def make():
    return Decode().eval()


def example():
    return torch.rand(2, 3, 16), torch.rand(2, 10, 16), torch.tensor([9, 9, 9])


def calls():
    x, cache = torch.randn(2, 3, 16), torch.randn(2, 10, 16)
    yield "early", (x, cache, torch.tensor([0, 1, 2]))
    yield "before the first", (x, cache, torch.tensor([-1, 0, 1]))
    yield "far beyond", (x, cache, torch.tensor([2**40, 2**31, 2**32 - 1]))
    yield "far before", (x, cache, torch.tensor([-(2**40), 3, 2**33 + 1]))
