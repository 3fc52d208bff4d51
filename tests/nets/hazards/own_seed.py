"""A net that seeds torch's generator in each call, so that its noise and later draws are known."""

import torch
from torch import nn

KIND = "process"


class Seeded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x, seed=3):
        torch.manual_seed(seed)
        return self.net(x) + torch.randn(8)


def make():
    return Seeded().eval()


def example():
    return (torch.randn(4, 16),)


def followed(net):
    first = net(torch.ones(2, 16)), torch.rand(2)
    torch.rand(7)
    return first, net(torch.ones(2, 16)), torch.rand(2)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "another seed", (torch.randn(4, 16), 5)
    yield "what follows", followed
    yield "another batch", (torch.randn(2, 16),)
