"""Functions that keep small arguments: log1p, expm1, tanh, asinh of 1e-9 are 1e-9, not 0."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(10)
        self.scale = nn.Parameter(torch.rand(10) + 0.5)

    def forward(self, x):
        x = x * self.scale
        return (
            self.tower(x),
            torch.log1p(x),
            torch.expm1(x),
            torch.tanh(x),
            torch.sinh(x),
            torch.asinh(x),
            torch.atan(x),
            torch.erf(x),
            nn.functional.elu(-x),
            nn.functional.selu(-x),
        )


def make():
    return Small().eval()


def example():
    return (torch.rand(4, 10) + 0.1,)


def calls():
    for exponent in (-3, -6, -9, -20):
        yield f"of 1e{exponent}", (10.0**exponent * (torch.rand(4, 10) + 0.5),)
    yield "negative of 1e-7", (-1e-7 * (torch.rand(4, 10) + 0.5),)
    yield "minus one and below", (-torch.rand(4, 10) * 3,)
