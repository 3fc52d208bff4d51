"""A net that appends its features to a list and returns their mean: the list grows at each call."""

import torch
from torch import nn

KIND = "state"


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 8))
        self.seen = []

    def forward(self, x):
        self.seen.append(self.body(x))
        return torch.stack(self.seen).mean(0)


def make():
    return Remembering().eval()


def example():
    return (torch.randn(2, 12),)


def state(net):
    return len(net.seen)


def thrice(net):
    returned = [net(torch.full((2, 12), number)) for number in (1.0, -1.0, 0.5)]
    return returned, list(net.seen)


def forgotten(net):
    net.seen.clear()
    return thrice(net)


def calls():
    yield "three calls", thrice
    yield "three more", thrice
    yield "after the list was cleared", forgotten
