"""A net that takes its scale for each call from a counter, which copies do not share."""

import itertools

import torch
from torch import nn

KIND = "process"


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.scales = itertools.cycle([0.5, 1.0, 2.0])

    def forward(self, x):
        return self.net(x) * next(self.scales)


def make():
    return Counting().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "the second scale", lambda net: net(torch.ones(4, 16))
    yield "the third", lambda net: net(torch.ones(4, 16))
    yield "four more", lambda net: [net(torch.ones(2, 16)) for _ in range(4)]
    yield "what is next", lambda net: next(net.scales)
