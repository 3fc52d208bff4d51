"""A net that may get no rows: sums are 0, means NaN, and a maximum of nothing an error."""

import torch
from torch import nn

KIND = "form"


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        y = self.net(x)
        return y, y.sum(-2), y.mean(-2), y.softmax(-1).amax(-1), y.amax(-1).prod(-1)


def make():
    return Pooled().eval()


def example():
    return (torch.randn(3, 5, 8),)


def calls():
    yield "no sequence", (torch.randn(0, 5, 8),)
    yield "no element", (torch.randn(3, 0, 8),)
    yield "nothing", (torch.randn(0, 0, 8),)
    yield "one row", (torch.randn(1, 1, 8),)
    yield "refused: no column", (torch.randn(3, 5, 0),)
