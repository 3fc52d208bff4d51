"""A net that keeps its table of positions and grows it for longer inputs, in an attribute."""

import torch
from torch import nn

KIND = "state"


class Rotary(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 16))
        self.base, self.table = 100.0, None

    def angles(self, length, dtype):
        if self.table is None or len(self.table) < length:
            rates = self.base ** -(torch.arange(0, 16, 2) / 16)
            self.table = torch.arange(length)[:, None] * rates
        return self.table[:length].to(dtype)

    def forward(self, x):
        angles = self.angles(x.shape[1], x.dtype)
        first, second = self.body(x).chunk(2, -1)
        cos, sin = angles.cos(), angles.sin()
        return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


def make():
    return Rotary().eval()


def example():
    return (torch.randn(2, 8, 16),)


def rebased(net):
    net.base, net.table = 10.0, None
    return net(torch.ones(2, 8, 16)), net.table


def calls():
    yield "as long", (torch.randn(2, 8, 16),)
    yield "longer", (torch.randn(2, 20, 16),)
    yield "as long again", (torch.randn(2, 8, 16),)
    yield "with another base and a new table", rebased
    yield "and as long once more", lambda net: net(torch.full((2, 8, 16), -1.0))
