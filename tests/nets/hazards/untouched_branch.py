"""A net that returns its argument itself where nothing is to be cut off, and else a new tensor."""

import torch
from torch import nn

KIND = "process"


class Clipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.limit = nn.Parameter(torch.tensor(3.0), requires_grad=False)

    def forward(self, x):
        if x.abs().max() <= self.limit:
            return x
        return x.clamp(-self.limit, self.limit)


def make():
    return Clipped().eval()


def example():
    return (10 + torch.rand(4, 16),)


def is_same(net):
    x = torch.ones(4, 16)
    return net(x) is x


def written(net):
    x = torch.ones(4, 16)
    net(x).mul_(2)
    return x


def calls():
    yield "small", (torch.rand(4, 16),)
    yield "large", (10 * torch.randn(4, 16),)
    yield "not a number", (torch.full((4, 16), float("nan")),)
    yield "identity", is_same
    yield "writing into the output", written
    yield "double", (torch.rand(4, 16).double(),)
