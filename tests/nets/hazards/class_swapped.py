"""A net whose layer gets another class after optimisation: its forward is the new class's."""

import torch
from torch import nn

KIND = "state"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.inner = nn.LayerNorm(24), nn.Linear(24, 24)

    def forward(self, x):
        return x + torch.tanh(self.inner(self.norm(x)))


class Gated(Layer):
    def forward(self, x):
        return x * torch.sigmoid(self.inner(self.norm(x)))


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
    net.second.__class__ = Gated


def both(net):
    net.first.__class__ = Gated
    return net(torch.ones(3, 24))


def calls():
    yield "one layer", (torch.randn(3, 24),)
    yield "both layers", both
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 72).reshape(3, 24))
