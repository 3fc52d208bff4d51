"""A net that writes a line into a log at each call; optimisation writes none into the user's."""

import io

import torch
from torch import nn

KIND = "process"


class Logged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.log = io.StringIO()

    def forward(self, x):
        self.log.write(f"{tuple(x.shape)}\n")
        return self.net(x)


def make():
    return Logged().eval()


def state(net):
    return net.log.getvalue()


def example():
    return (torch.randn(4, 16),)


def lines(net):
    net(torch.ones(4, 16))
    net(torch.ones(2, 16))
    return net.log.getvalue().splitlines()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(3, 16),)
    yield "lines", lines
