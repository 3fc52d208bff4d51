"""A net with attributes and methods whose names a wrapper may use itself; they are the net's."""

import torch
from torch import nn

KIND = "interface"


class Names(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.original_net = nn.Linear(8, 4)
        self.net, self.module, self.built_backends = 1.0, 2.0, ("own",)
        self._backends, self._warned, self._warns, self._why_none = 3.0, 4.0, 5.0, "own"
        self.record, self.backend, self.lock, self.check = 6.0, 7.0, 8.0, 9.0

    def forward(self, x):
        return self.original_net(x) * self.net + self._backends * self.module + self._warned

    def _warn(self, text):
        return f"own: {text}"

    def _warn_of(self, number):
        return number + 1


def make():
    return Names().eval()


def example():
    return (torch.randn(4, 8),)


def set_all(net):
    net._backends, net._warned, net.built_backends = -1.0, 0.5, ()
    return net(torch.ones(4, 8)), net._backends, net.built_backends


def replaced(net):
    net.original_net = nn.Linear(8, 2)
    return net(torch.ones(4, 8)), net.original_net(torch.ones(1, 8))


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "attributes", lambda net: (net._backends, net._warned, net._why_none, net.lock)
    yield "a tuple", lambda net: net.built_backends
    yield "methods", lambda net: (net._warn("text"), net._warn_of(1))
    yield "a module", lambda net: net.original_net(torch.ones(1, 8))
    yield "attributes that are set", set_all
    yield "a module that is replaced", replaced
