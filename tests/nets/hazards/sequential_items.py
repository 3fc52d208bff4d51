"""A Sequential that is indexed, sliced, iterated and taken apart by the caller."""

import torch
from torch import nn

KIND = "interface"


def make():
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 8)
    ).eval()


def example():
    return (torch.randn(4, 16),)


def replaced(net):
    former = net[2], net[3]
    before = net(torch.ones(4, 16))
    net[2] = nn.Linear(32, 32)
    net[-2] = nn.Sigmoid()
    inside = net(torch.ones(4, 16)), type(net[3]).__name__
    net[2], net[3] = former
    return before, inside, net(torch.ones(4, 16))


def cut(net):
    del net[3]
    net.append(nn.Softmax(-1))
    net.insert(0, nn.Hardtanh())
    return net(torch.full((4, 16), 2.0)), len(net)


def joined(net):
    longer = net + nn.Sequential(nn.ReLU())
    return longer(torch.ones(4, 16)), len(longer), type(longer).__name__


def calls():
    x = torch.randn(4, 16)
    yield "length", lambda net: (len(net), bool(net))
    yield "items", lambda net: [type(net[n]).__name__ for n in range(len(net))]
    yield "the last", lambda net: net[-1](torch.ones(1, 32))
    yield "iteration", lambda net: [type(module).__name__ for module in net]
    yield "backwards", lambda net: [type(module).__name__ for module in reversed(list(net))]
    yield "a slice", lambda net: (net[:2](x), len(net[1:4]), type(net[:2]).__name__)
    yield "whether it holds a module", lambda net: (net[1] in net, nn.ReLU() in net)
    yield "replaced", replaced
    yield "cut and extended", cut
    yield "joined to another", joined
    yield "refused: an item too far", lambda net: net[9]
