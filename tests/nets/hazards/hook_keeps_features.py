"""A net with a hook that keeps a layer's output in a list: the user reads it after each call."""

import torch
from torch import nn

KIND = "state"


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48))
        self.middle = nn.Sequential(nn.Linear(48, 48), nn.GELU(), nn.LayerNorm(48))
        self.out, self.features = nn.Linear(48, 4), []
        self.middle.register_forward_hook(self.keep)

    def keep(self, module, args, output):
        self.features.append(output)

    def forward(self, x):
        return self.out(self.middle(self.stem(x)))


def make():
    return Hooked().eval()


def example():
    return (torch.randn(2, 12),)


def state(net):
    return len(net.features)


def read(net):
    net.features.clear()
    return net(torch.linspace(-1, 1, 24).reshape(2, 12)), list(net.features)


def calls():
    yield "fresh", (torch.randn(2, 12),)
    yield "read", read
    yield "read again", read
