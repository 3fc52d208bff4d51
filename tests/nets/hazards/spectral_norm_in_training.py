"""A net with a spectral norm set to training later: each call then iterates its buffers."""

import torch
from torch import nn

KIND = "state"


class Critic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.utils.parametrizations.spectral_norm(nn.Linear(12, 32))
        self.second = nn.utils.parametrizations.spectral_norm(nn.Linear(32, 1))

    def forward(self, x):
        return self.second(nn.functional.leaky_relu(self.first(x), 0.2))


def make():
    return Critic().eval()


def example():
    return (torch.randn(4, 12),)


def scaled(net):
    net.first.parametrizations.weight.original[:6] *= 3
    return net(torch.ones(4, 12))


def trained(net):
    net.first.train()
    returned = [net(torch.ones(4, 12)) for _ in range(3)]
    return returned, net.first.parametrizations.weight[0]._u.clone()


def evaluated(net):
    net.eval()
    return net(torch.ones(4, 12))


def calls():
    yield "fresh", (torch.randn(4, 12),)
    yield "rows of the raw weight scaled", scaled
    yield "three calls in training", trained
    yield "in evaluation mode", evaluated
