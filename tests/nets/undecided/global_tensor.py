"""A net that adds a tensor of its file, which is written in place: not promised to be seen."""

import torch
from torch import nn

KIND = "state"

TABLE = torch.linspace(-1, 1, 32)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(torch.tanh(self.norm(self.stem(x)) + TABLE))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def written(net):
    TABLE.mul_(-2)
    try:
        return net(torch.ones(3, 12))
    finally:
        TABLE.mul_(-0.5)


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "written in place", written
    yield "as it was", lambda net: net(torch.ones(3, 12))
