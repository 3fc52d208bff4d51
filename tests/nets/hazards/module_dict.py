"""A ModuleDict with a forward: heads are looked up, listed, added and removed by name."""

import torch
from torch import nn

KIND = "interface"


class Heads(nn.ModuleDict):
    def forward(self, x):
        return {name: head(x) for name, head in self.items()}


def make():
    return Heads({"left": nn.Linear(8, 4), "right": nn.Linear(8, 2)}).eval()


def example():
    return (torch.randn(3, 8),)


def added(net):
    net["top"] = nn.Linear(8, 1)
    net.update({"right": nn.Identity()})
    return net(torch.ones(3, 8))


def removed(net):
    head = net.pop("left")
    return net(torch.ones(3, 8)), list(net), head(torch.ones(1, 8))


def calls():
    yield "names", lambda net: (list(net), list(net.keys()), len(net))
    yield "whether it is there", lambda net: ("left" in net, "top" in net)
    yield "one head", lambda net: net["left"](torch.ones(1, 8))
    yield "all heads", lambda net: [type(head).__name__ for head in net.values()]
    yield "added", added
    yield "removed", removed
    yield "refused: an unknown name", lambda net: net["none"]
