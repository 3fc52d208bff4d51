"""Outputs that the caller keeps, writes into or resizes, which later calls neither see nor undo."""

import torch
from torch import nn

KIND = "form"


def make():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)).eval()


def example():
    return (torch.randn(4, 8),)


def kept(net):
    x = torch.ones(4, 8)
    return [net(x * scale) for scale in range(4)]


def written(net):
    x = torch.ones(4, 8)
    first = net(x)
    first.zero_()
    return net(x), first


def resized(net):
    x = torch.ones(4, 8)
    net(x).resize_(2, 2)
    return net(x)


def grown(net):
    x = torch.ones(4, 8)
    output = net(x)
    output.resize_(64, 64).zero_()
    return net(x), output.sum()


def shared(net):
    x = torch.ones(4, 8)
    output = net(x).share_memory_()
    output.mul_(2)
    return output, output.is_shared(), net(x)


def by_numpy(net):
    x = torch.ones(4, 8)
    array = net(x).numpy()
    array += 1
    return net(x), torch.from_numpy(array)


def fed_back(net):
    x = torch.ones(4, 8)
    for _ in range(3):
        x = net(x)
    return x


def argument_changed(net):
    x = torch.ones(4, 8)
    before = net(x)
    x.mul_(3)
    return before, net(x)


def calls():
    yield "kept", kept
    yield "written", written
    yield "resized", resized
    yield "resized to more than it was", grown
    yield "in shared memory", shared
    yield "written by numpy", by_numpy
    yield "fed back", fed_back
    yield "an argument that is changed afterwards", argument_changed
    yield "flags", lambda net: (net(torch.ones(4, 8)).is_inference(), net(torch.ones(4, 8)).is_leaf)
