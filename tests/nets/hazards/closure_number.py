"""A net whose activation is a closure over a number that changes."""

import torch
from torch import nn

KIND = "state"


def slope_and_activation():
    slope = 1.0

    def activation(x):
        return torch.sigmoid(slope * x)

    def set_slope(value):
        nonlocal slope
        slope = value

    return activation, set_slope


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)
        self.activation, self.set_slope = slope_and_activation()

    def forward(self, x):
        return self.out(self.activation(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def steeper(net):
    net.set_slope(6.0)
    return net(torch.ones(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "a steeper slope", steeper
    yield "fresh again", lambda net: net(torch.linspace(-1, 1, 36).reshape(3, 12))
