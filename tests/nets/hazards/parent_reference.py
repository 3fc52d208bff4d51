"""A net whose parts read the net that holds them, through a reference that is no submodule."""

import weakref

import torch
from torch import nn

KIND = "process"


class Part(nn.Module):
    def __init__(self, parent) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.parents = [parent]
        self.__dict__["parent"] = parent
        self._weak = weakref.ref(parent)

    def forward(self, x):
        [parent] = self.parents
        return self.net(x) * parent.scale + self.parent.shift


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = 2.0, nn.Parameter(torch.ones(8), requires_grad=False)
        self.first, self.last = Part(self), Part(self)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


def make():
    return Whole().eval()


def change(net):
    net.scale = 0.5
    net.shift.fill_(-1.0)


def example():
    return (torch.randn(4, 8),)


def references(net):
    part = net.get_submodule("first")
    return part.parents[0] is part.parent, part._weak() is part.parent


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "another batch", (torch.randn(2, 8),)
    yield "references", references
    yield "a part alone", lambda net: net.get_submodule("last")(torch.ones(1, 8))
