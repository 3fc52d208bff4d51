"""A net that returns a weight, a buffer and a slice of one: the very tensors, not copies."""

import torch
from torch import nn

KIND = "form"


class Returned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.scale = nn.Parameter(torch.rand(8), requires_grad=False)
        self.register_buffer("table", torch.randn(6, 8))

    def forward(self, x):
        return self.net(x) * self.scale, self.scale, self.table, self.table[2:4]


def make():
    return Returned().eval()


def example():
    return (torch.randn(4, 16),)


def is_same(net):
    _, scale, table, part = net(torch.ones(4, 16))
    address = net.table.data_ptr() + 2 * 8 * 4
    return scale is net.scale, table is net.table, part.data_ptr() == address


def updated(net):
    before = net(torch.ones(4, 16))
    net.table.mul_(2)
    net.scale.fill_(3)
    return before, net(torch.ones(4, 16))


def written(net):
    net(torch.ones(4, 16))[3].zero_()
    return net(torch.ones(4, 16)), net.table


def replaced(net):
    net.table = torch.ones(6, 8)
    return net(torch.ones(4, 16))


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "identity", is_same
    yield "updated in place, seen in former outputs too", updated
    yield "written through an output", written
    yield "replaced", replaced
