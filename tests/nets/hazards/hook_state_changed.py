"""A net with a hook that scales by a number in an object, which the user changes later."""

import torch
from torch import nn

KIND = "state"


class Scaling:
    def __init__(self) -> None:
        self.factor, self.shift = 1.0, torch.zeros(32)

    def __call__(self, module, args, output):
        return self.factor * output + self.shift


class Edited(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.second = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32))
        self.out, self.scaling = nn.Linear(32, 4), Scaling()
        self.first.register_forward_hook(self.scaling)

    def forward(self, x):
        return self.out(self.second(self.first(x)))


def make():
    return Edited().eval()


def example():
    return (torch.randn(3, 12),)


def change(net):
    net.scaling.factor = -2.0


def shifted(net):
    net.scaling.shift.copy_(torch.linspace(-2, 2, 32))
    return net(torch.ones(3, 12))


def calls():
    yield "another factor", (torch.randn(3, 12),)
    yield "another shift", shifted
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 36).reshape(3, 12))
