"""A net that adds noise from numpy's generator: the same as in eager from one seed."""

import numpy as np
import torch
from torch import nn

KIND = "state"


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4))
        self.level = 0.0

    def forward(self, x):
        noise = torch.from_numpy(np.random.standard_normal(12)).to(x.dtype)
        return self.body(x + self.level * noise)


def make():
    return Noisy().eval()


def example():
    return (torch.randn(3, 12),)


def seeded(level):
    def use(net):
        np.random.seed(4)
        net.level = level
        return net(torch.ones(3, 12)), net(torch.ones(3, 12)), float(np.random.random())

    return use


def calls():
    yield "without noise", seeded(0.0)
    yield "with noise", seeded(1.0)
    yield "without it again", seeded(0.0)
