"""A net with parametrised weights, called within parametrize.cached(): updates show after it."""

import torch
from torch import nn
from torch.nn.utils import parametrize

KIND = "state"


class Symmetric(nn.Module):
    def forward(self, raw):
        return raw.triu() + raw.triu(1).mT


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(16, 16), nn.LayerNorm(16), nn.Linear(16, 16)
        for layer in (self.first, self.second):
            parametrize.register_parametrization(layer, "weight", Symmetric())

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 16),)


def cached(net):
    with parametrize.cached():
        first = net(torch.ones(3, 16))
        net.first.parametrizations.weight.original.mul_(-2)
        second = net(torch.ones(3, 16))
    return first, second, net(torch.ones(3, 16))


def calls():
    yield "fresh", (torch.randn(3, 16),)
    yield "updated while cached", cached
    yield "again", cached
