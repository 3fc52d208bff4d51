"""The sign of zero: 1 / -0 is minus infinity, and the angle of (-1, -0) minus pi."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class SignOfZero(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(6)
        self.scale = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x):
        y = x * self.scale
        return (
            self.tower(x),
            torch.reciprocal(y),
            torch.atan2(y, -torch.ones_like(y)),
            torch.reciprocal(-y),
            torch.reciprocal(torch.ceil(y)),
            torch.reciprocal(torch.round(y)),
            torch.reciprocal(y.abs()),
        )


def make():
    return SignOfZero().eval()


def example():
    return (torch.rand(4, 6) + 1.0,)


def calls():
    yield "zeros", (torch.zeros(4, 6),)
    yield "negative zeros", (torch.full((4, 6), -0.0),)
    yield "small and negative", (-0.4 * torch.rand(4, 6) - 0.01,)
    yield "mixed", (torch.tensor([0.0, -0.0, 1.0, -1.0, -0.3, 0.3]).repeat(4, 1),)
