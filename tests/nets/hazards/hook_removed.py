"""A net with a hook that steers a layer's output, which the user removes after optimisation."""

import torch
from torch import nn

KIND = "state"


class Steered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.LayerNorm(32))
        self.second = nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.LayerNorm(32))
        self.out = nn.Linear(32, 4)
        self.handle = self.first.register_forward_hook(self.steer)
        self.strength = 1.0

    @staticmethod
    def steer(module, args, output):
        return output + torch.linspace(-1, 1, 32, dtype=output.dtype)

    def forward(self, x):
        return self.out(self.second(self.first(x)))


def make():
    return Steered().eval()


def example():
    return (torch.randn(3, 12),)


def removed(net):
    net.handle.remove()
    return net(torch.ones(3, 12))


def added(net):
    net.handle = net.second.register_forward_hook(net.steer)
    return net(torch.ones(3, 12))


def calls():
    yield "with its hook", (torch.randn(3, 12),)
    yield "without it", removed
    yield "added to another layer", added
