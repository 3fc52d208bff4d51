"""A net that is evaluated with averaged weights, which the user swaps in and out."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def forward(self, x):
        return self.body(x)


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def swapped(net):
    x = torch.linspace(-1, 1, 36).reshape(3, 12)
    own = [weight.detach().clone() for weight in net.parameters()]
    before = net(x)
    for weight in net.parameters():
        weight.lerp_(torch.ones_like(weight), 0.3)
    within = net(x)
    for weight, value in zip(net.parameters(), own, strict=True):
        weight.data = value
    return before, within, net(x)


def by_vector(net):
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector.flip(0), net.parameters())
    return net(torch.ones(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "swapped in and out", swapped
    yield "and again", swapped
    yield "all from one vector", by_vector
    yield "and swapped", swapped
