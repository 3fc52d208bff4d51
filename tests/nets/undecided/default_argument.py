"""A net with a function whose default argument is changed later: not promised to be seen."""

import torch
from torch import nn

KIND = "state"


def squashed(x, limit=1.0):
    return limit * torch.tanh(x / limit)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(squashed(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def limited(limit):
    def use(net):
        squashed.__defaults__ = (limit,)
        try:
            return net(torch.ones(3, 12))
        finally:
            squashed.__defaults__ = (1.0,)

    return use


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "another limit", limited(0.1)
    yield "as it was", limited(1.0)
