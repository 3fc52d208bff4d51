"""A net that adds a dimension to its argument in place and turns it; the argument keeps both."""

import torch
from torch import nn

KIND = "form"


class Turned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 8)

    def forward(self, x):
        x.t_()
        x.unsqueeze_(0)
        return self.net(x)


def make():
    return Turned().eval()


def example():
    return (torch.randn(4, 6),)


def shapes(net):
    x = torch.ones(4, 6)
    net(x)
    return list(x.shape), list(x.stride())


def calls():
    yield "fresh", (torch.randn(4, 6),)
    yield "columns", (torch.randn(6, 4).T,)
    yield "shape and strides afterwards", shapes
    yield "refused: the transposed shape", (torch.randn(6, 4),)
