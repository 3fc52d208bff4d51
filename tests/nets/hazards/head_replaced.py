"""A net whose head the user replaces and whose layers he removes, swaps and adds."""

import torch
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 12))
            for _ in range(3)
        )
        self.head = nn.Linear(12, 4)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def make():
    return Net().eval()


def example():
    return (torch.randn(2, 12),)


def updated(update):
    def use(net):
        torch.manual_seed(3)
        update(net)
        return net(torch.linspace(-1, 1, 24).reshape(2, 12))

    return use


def exchanged(net):
    net.layers[0], net.layers[1] = net.layers[1], net.layers[0]


def fewer(net):
    net.layers = net.layers[:1]


def calls():
    yield "fresh", (torch.randn(2, 12),)
    yield "another head", updated(lambda net: setattr(net, "head", nn.Linear(12, 6)))
    yield "two layers exchanged", updated(exchanged)
    yield "a part of a layer replaced", updated(lambda net: net.layers[2].__setitem__(2, nn.ReLU()))
    yield "the last layer removed", updated(lambda net: net.layers.__delitem__(-1))
    yield "one layer left", updated(fewer)
    yield "one added", updated(lambda net: net.layers.append(nn.Linear(12, 12)))
