"""Whole numbers divided three ways, negative and large; a divisor of 0 must raise."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Divided(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.register_buffer("divisor", torch.tensor([3, 5, 7, 11, 1, 13, 2, 16]))

    def forward(self, n, d):
        return (
            self.tower(n.float()),
            n // self.divisor,
            torch.div(n, self.divisor, rounding_mode="trunc"),
            n / self.divisor,
            n % self.divisor,
            torch.fmod(n, self.divisor),
            torch.div(n, d, rounding_mode="floor"),
            n // 2,
        )


def make():
    return Divided().eval()


def example():
    return torch.randint(0, 100, (5, 8)), torch.randint(1, 9, (5, 8))


def calls():
    n, d = torch.randint(-100, 100, (5, 8)), torch.randint(1, 9, (5, 8))
    yield "negative", (n, d)
    yield "negative divisors", (n, -d)
    yield "large", (n * 2**40 + 1, d)
    yield "by a large one", (n, d * 2**33)
    yield "near 2^63", (2**63 - 1 - n.abs(), d)
    yield "refused: by zero", (n, d * 0)
    yield "refused: by zero once", (n, d.index_fill(1, torch.tensor([3]), 0))
