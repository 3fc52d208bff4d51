"""Powers and roots at their edges: 0^0 is 1, 0^-1 infinite, a root of a negative number NaN."""

import torch
from torch import nn

KIND = "values"


class Powers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.exponent = nn.Parameter(torch.tensor([0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -2.0, 1.5]))

    def forward(self, x):
        return (
            x**self.exponent,
            x**2,
            x**3,
            x**0.5,
            x**-0.5,
            x**-1,
            x**0,
            x.sqrt(),
            x.rsqrt(),
            2.0**x,
            x.sign() * x.abs() ** (1 / 3),
        )


def make():
    return Powers().eval()


def example():
    return (torch.rand(4, 8) + 0.5,)


def calls():
    yield "zeros", (torch.zeros(4, 8),)
    yield "negative", (-torch.rand(4, 8) - 0.5,)
    yield "whole negative", (torch.arange(-16, 16).reshape(4, 8).float(),)
    yield "infinities", (torch.tensor([float("inf"), -float("inf")]).repeat(4, 4),)
    yield "NaN", (torch.full((4, 8), float("nan")),)
