"""A net that looks up a steering vector in a dict of tensors, which the user fills later."""

import torch
from torch import nn

KIND = "state"


class Steered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.body = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))
        self.vectors = {}

    def forward(self, x):
        hidden = self.stem(x)
        for strength, vector in self.vectors.values():
            hidden = hidden + strength * vector
        return self.body(hidden)


def make():
    return Steered().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.vectors["kind"] = (2.0, torch.linspace(-1, 1, 32))


def reversed_in_place(net):
    net.vectors["kind"][1].neg_()
    return net(torch.ones(3, 12))


def emptied(net):
    net.vectors.clear()
    return net(torch.ones(3, 12))


def calls():
    yield "a vector added", (torch.randn(3, 12),)
    yield "negated in place", reversed_in_place
    yield "emptied", emptied
