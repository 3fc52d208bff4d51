"""A net with dropout left in training mode: the same draws and generator as in eager."""

import torch
from torch import nn

KIND = "state"


class Sampling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(self.drop(self.stem(x)))


def make():
    net = Sampling().eval()
    net.drop.train()
    return net


def example():
    return (torch.randn(3, 12),)


def seeded(net):
    torch.manual_seed(7)
    returned = [net(torch.ones(3, 12)) for _ in range(2)]
    return returned, torch.rand(3)


def off(net):
    net.eval()
    return net(torch.ones(3, 12)), torch.rand(3)


def calls():
    yield "from one seed", seeded
    yield "from where it is", lambda net: [net(torch.ones(3, 12)), torch.rand(2)]
    yield "off", off
