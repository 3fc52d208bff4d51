"""A net whose own `forward` callers replace and wrap, as accelerate does, and put back again."""

import types

import torch
from torch import nn

KIND = "interface"


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        return self.net(x)


def make():
    return Plain().eval()


def example():
    return (torch.randn(4, 8),)


def wrapped(net):
    former = net.forward
    net.forward = lambda x: former(x) * 2
    inside = net(torch.ones(4, 8))
    del net.forward
    return inside, net(torch.ones(4, 8))


def bound(net):
    def forward(self, x):
        return self.net(x).tanh()

    net.forward = types.MethodType(forward, net)
    inside = net(torch.ones(4, 8))
    del net.forward
    return inside, net(torch.ones(4, 8))


def of_class(net):
    former = Plain.forward
    Plain.forward = lambda self, x: former(self, x) + 1
    try:
        return net(torch.ones(4, 8))
    finally:
        Plain.forward = former


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "called directly", lambda net: net.forward(torch.ones(4, 8))
    yield "wrapped", wrapped
    yield "bound", bound
    yield "replaced in the class", of_class
    yield "as it was", lambda net: net(torch.ones(4, 8))
