"""Tails of erf, GELU and sigmoids: exact limits far out, and tails that are small and not 0."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Tails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x):
        x = x * self.scale
        return (
            torch.erfc(x),
            torch.sigmoid(-x),
            F.logsigmoid(-x),
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.mish(x),
            torch.exp(-x),
        )


def make():
    return Tails().eval()


def example():
    return (torch.rand(4, 8),)


def calls():
    for value in (4.0, 8.0, 30.0, 200.0, -2.0, -30.0, -80.0):
        yield f"around {value:g}", (value + torch.rand(4, 8),)
