"""Scattered maxima, products and means: untouched places keep their value or that of the start."""

import torch
from torch import nn

KIND = "indices"


class Scattered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x, places):
        x = x * self.scale
        start = torch.zeros_like(x) - 0.5
        kinds = ("amax", "amin", "prod", "mean")
        out = [start.scatter_reduce(0, places, x, kind) for kind in kinds]
        out += [
            start.scatter_reduce(0, places, x, kind, include_self=False) for kind in (*kinds, "sum")
        ]
        return (*out, start.scatter(1, places % 6, 2.0))


def make():
    return Scattered().eval()


def example():
    return torch.rand(7, 6) + 0.1, torch.argsort(torch.rand(7, 6), 0)


def calls():
    x, places = torch.randn(7, 6), torch.randint(0, 7, (7, 6))
    yield "repeated", (x, places)
    yield "all at one place", (x, places * 0 + 2)
    special = x.clone()
    special[1, 1], special[2, 2], special[3, 3] = float("nan"), float("inf"), -float("inf")
    yield "special values", (special, places)
    yield "negative", (-torch.rand(7, 6) - 1, places)
    yield "refused: place 7", (x, places + 7)
    yield "refused: place -1", (x, places * 0 - 1)
