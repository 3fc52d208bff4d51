"""A net that is called while nn.Linear has another forward, as in a patch of quantisation."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


def make():
    return nn.Sequential(
        nn.Linear(12, 32),
        nn.GELU(),
        nn.LayerNorm(32),
        nn.Linear(32, 32),
        nn.GELU(),
        nn.Linear(32, 4),
    ).eval()


def example():
    return (torch.randn(3, 12),)


def coarse(net):
    usual = nn.Linear.forward
    nn.Linear.forward = lambda layer, x: F.linear(x, layer.weight.sign() / 4, layer.bias)
    try:
        return net(torch.ones(3, 12))
    finally:
        nn.Linear.forward = usual


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "with another forward of linear layers", coarse
    yield "as it was", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
