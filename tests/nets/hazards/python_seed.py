"""A net that seeds Python's and numpy's generators in each call, which later draws show."""

import random

import numpy as np
import torch
from torch import nn

KIND = "process"


class Seeded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x, seed=3):
        random.seed(seed)
        np.random.seed(seed)
        scale, shift = random.uniform(0.5, 1.5), float(np.random.normal())
        return self.net(x) * scale + shift


def make():
    return Seeded().eval()


def example():
    return (torch.randn(4, 16),)


def followed(net):
    random.seed(9)
    np.random.seed(9)
    return net(torch.ones(4, 16)), random.random(), float(np.random.normal())


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another seed", (torch.randn(4, 16), 5)
    yield "another batch", (torch.randn(2, 16),)
    yield "what follows", followed
