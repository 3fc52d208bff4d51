"""A net whose noise level falls with a buffer that counts its calls: each call its own level."""

import torch
from torch import nn

KIND = "state"


class Annealed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 32), nn.SiLU(), nn.LayerNorm(32), nn.Linear(32, 12))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        return x + self.body(x) / self.steps


def make():
    return Annealed().eval()


def example():
    return (torch.randn(2, 12),)


def state(net):
    return int(net.steps)


def thrice(net):
    return [net(torch.ones(2, 12)) for _ in range(3)], int(net.steps)


def back(net):
    net.steps.zero_()
    return thrice(net)


def calls():
    yield "three calls", thrice
    yield "three more", thrice
    yield "counted anew", back
