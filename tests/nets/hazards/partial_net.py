"""A `functools.partial` of a net with some arguments set; further ones are still taken."""

import functools

import torch
from torch import nn

KIND = "process"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x, scale, shift=0.0):
        return self.net(x) * scale + shift


def make():
    return functools.partial(Scaled().eval(), scale=torch.tensor(2.0))


def change(net):
    with torch.no_grad():
        net.func.net.bias.fill_(0.5)
        net.keywords["scale"].fill_(3.0)


def example():
    return (torch.randn(4, 16),)


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x,)
    yield "a shift", {"x": x, "shift": 1.5}
    yield "another scale", {"x": x, "scale": torch.tensor(-1.0)}
    yield "refused: a scale by position", (x, torch.tensor(1.0))
