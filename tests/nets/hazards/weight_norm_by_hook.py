"""A net with torch's old weight norm, which computes its weight by a hook: its parts change."""

import warnings

import torch
from torch import nn

KIND = "state"


class Vocoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.first = nn.utils.weight_norm(nn.Conv1d(4, 16, 3))
            self.second = nn.utils.weight_norm(nn.Conv1d(16, 4, 3))

    def forward(self, x):
        return torch.tanh(self.second(nn.functional.leaky_relu(self.first(x), 0.1)))


def make():
    return Vocoder().eval()


def example():
    return (torch.randn(1, 4, 20),)


def change(net):
    with torch.no_grad():
        net.first.weight_g.mul_(3)


def turned(net):
    net.second.weight_v[0].neg_()
    return net(torch.linspace(-1, 1, 80).reshape(1, 4, 20))


def removed(net):
    for layer in (net.first, net.second):
        nn.utils.remove_weight_norm(layer)
    net.second.weight.mul_(0.5)
    return net(torch.linspace(-1, 1, 80).reshape(1, 4, 20))


def calls():
    yield "larger norms", (torch.randn(1, 4, 20),)
    yield "a direction turned", turned
    yield "the norm removed", removed
