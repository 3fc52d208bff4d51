"""A net with a `__getattr__` of its own that makes up names, and a `__setattr__` that checks."""

import torch
from torch import nn

KIND = "interface"


class Magic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)
        self.scale = 1.0

    def __getattr__(self, name):
        if name.startswith("times_"):
            return lambda x: self(x) * int(name.removeprefix("times_"))
        return super().__getattr__(name)

    def __setattr__(self, name, value):
        if name == "scale" and value < 0:
            raise ValueError("a scale is not negative")
        super().__setattr__(name, value)

    def forward(self, x):
        return self.net(x) * self.scale


def make():
    return Magic().eval()


def example():
    return (torch.randn(4, 8),)


def rescaled(net):
    net.scale = 2.0
    return net(torch.ones(4, 8)), net.scale


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "a name that is made up", lambda net: net.times_3(torch.ones(4, 8))
    yield "another scale", rescaled
    yield "refused: a negative scale", lambda net: setattr(net, "scale", -1.0)
    yield "refused: an unknown name", lambda net: net.minus_3
    yield "afterwards", lambda net: net(torch.ones(4, 8))
