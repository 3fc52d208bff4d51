"""A net whose layers have no weights until their first call; the user's net has none afterwards."""

import warnings

import torch
from torch import nn

KIND = "process"


def make():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.Sequential(nn.LazyLinear(32), nn.ReLU(), nn.LazyLinear(4)).eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "ones", lambda net: net(torch.ones(4, 16))
    yield "another batch", lambda net: net(torch.ones(3, 16))
    yield "shapes", lambda net: [list(weight.shape) for weight in net.parameters()]
    yield "refused: other columns", (torch.randn(4, 8),)
