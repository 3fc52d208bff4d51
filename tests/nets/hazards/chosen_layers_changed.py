"""A net that runs the layers numbered in a list, which the user appends to and reorders."""

import torch
from torch import nn

KIND = "state"


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            for _ in range(3)
        )
        self.chosen = [0, 1]

    def forward(self, x):
        for number in self.chosen:
            x = x + self.layers[number](x)
        return x


def make():
    return Chosen().eval()


def example():
    return (torch.randn(3, 16),)


def change(net):
    net.chosen.append(2)


def reordered(net):
    net.chosen.reverse()
    return net(torch.ones(3, 16))


def skipped(net):
    net.chosen[:] = [1]
    return net(torch.ones(3, 16))


def calls():
    yield "one more layer", (torch.randn(3, 16),)
    yield "in the other order", reordered
    yield "one layer", skipped
