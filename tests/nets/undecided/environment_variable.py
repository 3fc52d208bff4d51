"""A net that reads a variable of the environment in forward: not promised to be seen."""

import os

import torch
from torch import nn

KIND = "state"

NAME = "PASSNET_TEST_OF_NETS"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        hidden = self.norm(self.stem(x))
        return self.out(hidden.relu() if os.environ.get(NAME) == "relu" else hidden.tanh())


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def with_relu(net):
    os.environ[NAME] = "relu"
    try:
        return net(torch.ones(3, 12))
    finally:
        del os.environ[NAME]


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "with the variable", with_relu
    yield "without it", lambda net: net(torch.ones(3, 12))
