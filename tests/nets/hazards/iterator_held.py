"""A net that takes its scale for each call from an iterator, which cannot be copied."""

import itertools

import torch
from torch import nn

KIND = "process"


class Scheduled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.scales = (scale / 4 for scale in itertools.count(1))

    def forward(self, x):
        return self.net(x) * next(self.scales)


def make():
    return Scheduled().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "the second scale", lambda net: net(torch.ones(4, 16))
    yield "the third", lambda net: net(torch.ones(4, 16))
    yield "two more", lambda net: [net(torch.ones(2, 16)) for _ in range(2)]
    yield "what is next", lambda net: next(net.scales)
