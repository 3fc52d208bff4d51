"""A net with torch's new weight norm, a parametrisation: its norms and directions change later."""

import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

KIND = "state"


class Vocoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = parametrizations.weight_norm(nn.Conv1d(4, 16, 3))
        self.second = parametrizations.weight_norm(nn.Conv1d(16, 4, 3))

    def forward(self, x):
        return torch.tanh(self.second(nn.functional.leaky_relu(self.first(x), 0.1)))


def make():
    return Vocoder().eval()


def example():
    return (torch.randn(1, 4, 20),)


def change(net):
    with torch.no_grad():
        net.first.parametrizations.weight.original0.mul_(3)


def assigned(net):
    net.second.weight = torch.linspace(-1, 1, 192).reshape(4, 16, 3).sin()
    return net(torch.linspace(-1, 1, 80).reshape(1, 4, 20))


def removed(net):
    for layer in (net.first, net.second):
        parametrize.remove_parametrizations(layer, "weight")
    net.second.weight.mul_(0.5)
    return net(torch.linspace(-1, 1, 80).reshape(1, 4, 20))


def calls():
    yield "larger norms", (torch.randn(1, 4, 20),)
    yield "a weight assigned through the norm", assigned
    yield "the norm removed", removed
