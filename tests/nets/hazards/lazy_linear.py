"""A net with lazy layers: their weights are drawn at the user's first call, not before."""

import torch
from torch import nn
from torch.nn.parameter import is_lazy

KIND = "state"


def make():
    return nn.Sequential(
        nn.LazyLinear(32), nn.GELU(), nn.LayerNorm(32), nn.LazyLinear(16), nn.Linear(16, 4)
    ).eval()


def example():
    return (torch.randn(3, 12),)


def state(net):
    return [is_lazy(weight) for weight in net.parameters()]


def calls():
    yield "other values", lambda net: net(torch.linspace(-1, 1, 36).reshape(3, 12))
    yield "more rows", lambda net: net(torch.linspace(-3, 1, 84).reshape(7, 12))
    yield "refused: other features", (torch.randn(3, 13),)
