"""A net that serves five calls and then raises: optimisation uses none of them up."""

import torch
from torch import nn

KIND = "process"


class Metered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.left = 5

    def forward(self, x):
        if not self.left:
            raise RuntimeError("no calls are left")
        self.left -= 1
        return self.net(x)


def make():
    return Metered().eval()


def state(net):
    return net.left


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another batch", (torch.randn(2, 16),)
    yield "the rest", lambda net: [net(torch.ones(4, 16)) for _ in range(2)]
    yield "refused: none is left", (torch.randn(4, 16),)
