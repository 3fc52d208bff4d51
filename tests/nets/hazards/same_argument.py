"""A net that scales its first argument in place, then reads the second, which may be the first."""

import torch
from torch import nn

KIND = "form"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, a, b):
        a.mul_(2)
        return self.net(b) + a


def make():
    return Scaled().eval()


def example():
    return torch.randn(6, 8), torch.randn(6, 8)


def one_twice(net):
    x = torch.randn(6, 8)
    return net(x, x), x


def with_view(net):
    x = torch.randn(6, 8)
    return net(x, x.view(6, 8)), x


def rows(net):
    x = torch.randn(9, 8)
    return net(x[:6], x[3:]), x


def elements(net):
    x = torch.randn(64)
    return net(x[:48].view(6, 8), x[1:49].view(6, 8)), x


def calls():
    x = torch.randn(12, 8)
    yield "one tensor twice", one_twice
    yield "a tensor and a view of it", with_view
    yield "rows that overlap", rows
    yield "elements that overlap", elements
    yield "halves of one tensor, without overlap", (x[:6], x[6:])
    yield "refused: one row expanded", (torch.randn(1, 8).expand(6, 8), x[:6])
