"""A net with an orthogonal parametrisation and one of its own: their raw weights are updated."""

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

KIND = "state"


class Positive(nn.Module):
    def forward(self, raw):
        return torch.nn.functional.softplus(raw)


class Constrained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = parametrizations.orthogonal(nn.Linear(16, 16))
        self.norm, self.second = nn.LayerNorm(16), nn.Linear(16, 4)
        parametrize.register_parametrization(self.second, "weight", Positive())

    def forward(self, x):
        return self.second(torch.tanh(self.norm(self.first(x))))


def make():
    return Constrained().eval()


def example():
    return (torch.randn(3, 16),)


def change(net):
    with torch.no_grad():
        net.second.parametrizations.weight.original.sub_(2)


def turned(net):
    net.first.parametrizations.weight.original[0] += 1
    return net(torch.ones(3, 16))


def removed(net):
    parametrize.remove_parametrizations(net.second, "weight")
    net.second.weight.neg_()
    return net(torch.ones(3, 16))


def calls():
    yield "a raw weight smaller", (torch.randn(3, 16),)
    yield "the orthogonal one turned", turned
    yield "a parametrisation removed", removed
