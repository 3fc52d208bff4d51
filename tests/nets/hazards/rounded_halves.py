"""Rounding of halves, and whole division of floats of either sign."""

import torch
from torch import nn

KIND = "values"


class Rounds(nn.Module):
    def forward(self, x):
        return (
            x.round(),
            x.round(decimals=1),
            x.trunc(),
            x.frac(),
            torch.floor_divide(x, 0.75),
            torch.remainder(x, -0.75),
            torch.fmod(x, 0.75),
            (x + 0.5).floor(),
            x.to(torch.int32),
        )


def make():
    return Rounds().eval()


def example():
    return (torch.randn(6, 8),)


def calls():
    yield "halves", (torch.arange(48).reshape(6, 8) / 2 - 12.0,)
    yield "quarters", (torch.arange(48).reshape(6, 8) / 4 - 6.0,)
    yield "tenths", (torch.arange(48).reshape(6, 8) / 10 - 2.0,)
    yield "multiples of the divisor", (torch.arange(48).reshape(6, 8) * 0.75 - 18.0,)
