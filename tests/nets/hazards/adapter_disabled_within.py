"""A net with adapters that a context manager of its own disables for a while."""

from contextlib import contextmanager

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)
        self.adapter = nn.Sequential(nn.Linear(32, 4), nn.GELU(), nn.Linear(4, 32))
        self.is_disabled = False

    @contextmanager
    def disabled(self):
        self.is_disabled = True
        try:
            yield
        finally:
            self.is_disabled = False

    def forward(self, x):
        hidden = torch.relu(self.norm(self.stem(x)))
        return self.out(hidden if self.is_disabled else hidden + self.adapter(hidden))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def with_and_without(net):
    x = torch.linspace(-2, 2, 36).reshape(3, 12)
    first = net(x)
    with net.disabled():
        second = net(x)
    return first, second, net(x)


def by_assignment(net):
    net.is_disabled = True
    returned = net(torch.ones(3, 12))
    net.is_disabled = False
    return returned


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "with and without", with_and_without
    yield "disabled by an assignment", by_assignment
    yield "with it again", with_and_without
