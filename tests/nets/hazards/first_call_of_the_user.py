"""A net that warms up at its first call alone: that call is the user's, not the optimiser's."""

import torch
from torch import nn

KIND = "state"


class WarmedUp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4))
        self.is_warm = False

    def forward(self, x):
        if not self.is_warm:
            self.is_warm = True
            return self.body(0 * x)
        return self.body(x)


def make():
    return WarmedUp().eval()


def example():
    return (torch.randn(3, 12),)


def state(net):
    return net.is_warm


def cold(net):
    net.is_warm = False
    return net(torch.ones(3, 12)), net.is_warm, net(torch.ones(3, 12))


def calls():
    yield "the second", lambda net: net(torch.full((3, 12), 0.5))
    yield "cold again", cold
    yield "warm", lambda net: net(torch.linspace(-1, 1, 36).reshape(3, 12))
