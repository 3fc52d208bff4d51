"""Lengths of large and small pairs: hypot neither overflows nor underflows on the way."""

import torch
from torch import nn

KIND = "values"


class Lengths(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(9))

    def forward(self, x, y):
        x = x * self.scale
        return torch.hypot(x, y), torch.atan2(y, x)


def make():
    return Lengths().eval()


def example():
    return torch.rand(4, 9) + 0.1, torch.rand(4, 9) + 0.1


def calls():
    for scale in (1e19, 1e25, 1e37, 1e-19, 1e-25):
        yield f"of {scale:g}", (scale * torch.randn(4, 9), scale * torch.randn(4, 9))
    zero, infinity = torch.zeros(4, 9), torch.full((4, 9), float("inf"))
    yield "zeros", (zero, zero)
    yield "on the negative axis", (-torch.rand(4, 9) - 0.1, zero)
    yield "infinite beside NaN", (infinity, torch.full((4, 9), float("nan")))
