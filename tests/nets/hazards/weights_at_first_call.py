"""A net that makes its last layer at its first call, as wide as the input: the user's first one."""

import torch
from torch import nn

KIND = "state"


class Adapting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv1d(2, 8, 3), nn.BatchNorm1d(8), nn.ReLU(), nn.Flatten())
        self.out = None

    def forward(self, x):
        hidden = self.body(x)
        if self.out is None:
            weight = torch.linspace(-1, 1, 3 * hidden.shape[-1], dtype=x.dtype)
            self.out = nn.Parameter(weight.reshape(3, -1).sin() / 8)
        return hidden @ self.out.mT


def make():
    return Adapting().eval()


def example():
    return (torch.randn(2, 2, 12),)


def state(net):
    return net.out is None


def anew(net):
    net.out = None
    return net(torch.linspace(-1, 1, 36).reshape(2, 2, 9)), net.out.clone()


def calls():
    yield "the same width", (torch.randn(2, 2, 12),)
    yield "refused: another width", (torch.randn(2, 2, 9),)
    yield "made anew for another width", anew
    yield "refused: the example's width", (torch.randn(2, 2, 12),)
