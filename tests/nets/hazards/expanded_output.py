"""Outputs that are expanded: a stride is 0, they take no memory, and cannot be written into."""

import torch
from torch import nn

KIND = "form"


class Expanded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 16)

    def forward(self, x):
        y = self.net(x)
        return y, y.mean(-1, keepdim=True).expand_as(y), self.net.bias.expand(len(x), -1)


def make():
    return Expanded().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    x = torch.randn(4, 16)
    yield "fresh", (x,)
    yield "one row", (torch.randn(1, 16),)
    yield "strides", lambda net: [list(output.stride()) for output in net(x)]
    yield "refused: writing into the mean", lambda net: net(x)[1].add_(1)
    yield "refused: writing into the bias", lambda net: net(x)[2].mul_(2)
