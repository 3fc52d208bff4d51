"""A net that reads a number of its file, which is changed later: not promised to be seen."""

import torch
from torch import nn

KIND = "state"

SCALE = 1.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(torch.tanh(SCALE * self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def scaled(scale):
    def use(net):
        global SCALE
        SCALE = scale
        try:
            return net(torch.ones(3, 12))
        finally:
            SCALE = 1.0

    return use


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "another number", scaled(5.0)
    yield "as it was", scaled(1.0)
