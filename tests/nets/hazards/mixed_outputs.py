"""A net that returns a tensor, None, whole numbers, a fraction and a string, nested in a tuple."""

import torch
from torch import nn

KIND = "form"


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        y = self.net(x)
        return y, None, len(x), {"size": list(y.shape), "norm": 0.5 * y.dim()}, ("rows", y > 0)


def make():
    return Mixed().eval()


def example():
    return (torch.randn(4, 8),)


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "other rows", (torch.randn(3, 8),)
    yield "one more dimension", (torch.randn(2, 3, 8),)
