"""A net that begins with an in-place ReLU: its argument is written into."""

import torch
from torch import nn

KIND = "form"


def make():
    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(16, 16), nn.ReLU(inplace=True)).eval()


def example():
    return (torch.rand(4, 16),)


def twice(net):
    x = torch.randn(4, 16)
    return net(x), x, net(-x), x


def calls():
    yield "negative numbers", (torch.randn(4, 16),)
    yield "a part of a larger tensor", (torch.randn(8, 16)[2:6],)
    yield "not a number", (torch.full((4, 16), float("nan")),)
    yield "twice", twice
    yield "refused: whole numbers", (torch.arange(64).view(4, 16),)
