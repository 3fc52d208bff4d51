"""A net that skips layers by Python's random module: the same layers as in eager from one seed."""

import random

import torch
from torch import nn

KIND = "state"


class Stochastic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(12), nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 12))
            for _ in range(4)
        )
        self.share = 1.0

    def forward(self, x):
        for layer in self.layers:
            if random.random() < self.share:
                x = x + layer(x)
        return x


def make():
    return Stochastic().eval()


def example():
    return (torch.randn(3, 12),)


def seeded(seed):
    def use(net):
        random.seed(seed)
        net.share = 0.5
        return [net(torch.ones(3, 12)) for _ in range(3)], random.random()

    return use


def calls():
    yield "all layers", (torch.randn(3, 12),)
    for seed in range(3):
        yield f"seed {seed}", seeded(seed)
