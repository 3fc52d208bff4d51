"""A net that adds noise from a numpy generator of its own, which moves on by a draw each call."""

import numpy as np
import torch
from torch import nn

KIND = "process"


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.generator = np.random.default_rng(0)

    def forward(self, x):
        noise = self.generator.standard_normal(8).astype(np.float32)
        return self.net(x) + torch.from_numpy(noise)


def make():
    return Noisy().eval()


def state(net):
    return str(net.generator.bit_generator.state)


def example():
    return (torch.randn(4, 16),)


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x,)
    yield "the same again", (x,)
    yield "three in a row", lambda net: [net(x) for _ in range(3)]
    yield "where its generator is", lambda net: float(net.generator.random())
