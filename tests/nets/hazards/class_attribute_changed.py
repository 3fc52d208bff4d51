"""A net that reads a number and a method of its class, which the user sets on the class later."""

import torch
from torch import nn

KIND = "state"


class Layer(nn.Module):
    slope = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(24), nn.Linear(24, 24)

    def activation(self, x):
        return torch.sigmoid(self.slope * x)

    def forward(self, x):
        return x + self.activation(self.inner(self.norm(x)))


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.out = Layer(), Layer(), nn.Linear(24, 4)

    def forward(self, x):
        return self.out(self.second(self.first(x)))


def make():
    return Stack().eval()


def example():
    return (torch.randn(3, 24),)


def change(net):
    Layer.slope = 8.0


def activated(net):
    Layer.activation = lambda layer, x: torch.relu(x)
    return net(torch.ones(3, 24))


def calls():
    yield "another slope", (torch.randn(3, 24),)
    yield "another activation", activated
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 72).reshape(3, 24))
