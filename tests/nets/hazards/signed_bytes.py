"""Signed bytes added, scaled and negated: they wrap at 128, and their sums are 64 bits wide."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class SignedBytes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.register_buffer("weight", torch.randint(-3, 4, (16,), dtype=torch.int8))
        self.out = nn.Linear(16, 4)

    def forward(self, a, b):
        added, scaled = a + b, a * self.weight
        total = (a.int() * b.int()).sum(-1)
        return (
            self.out(self.tower(added.float() / 16)),
            added,
            scaled,
            -a,
            a.abs(),
            total,
            a.sum(-1),
            a - 100,
        )


def make():
    return SignedBytes().eval()


def _bytes(low, high):
    return torch.randint(low, high, (5, 16), dtype=torch.int8)


def example():
    return _bytes(0, 20), _bytes(0, 20)


def calls():
    yield "negative", (_bytes(-60, 0), _bytes(-60, 0))
    yield "large", (_bytes(100, 128), _bytes(100, 128))
    yield "any", (_bytes(-128, 128), _bytes(-128, 128))
    yield "all -128", (torch.full((5, 16), -128, dtype=torch.int8), _bytes(-128, 128))
