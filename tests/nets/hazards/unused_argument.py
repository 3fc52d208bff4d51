"""A net that never reads one of its arguments; any value is right there, of any type and shape."""

import torch
from torch import nn

KIND = "form"


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))

    def forward(self, ids, x, mask=None):
        return self.net(x)


def make():
    return Unused().eval()


def example():
    return torch.arange(4), torch.randn(4, 8), torch.ones(4)


def calls():
    x = torch.randn(4, 8)
    yield "fresh", (torch.arange(4), x, torch.zeros(4))
    yield "None", (None, x, None)
    yield "other shapes", (torch.arange(9), x, torch.ones(2, 2))
    yield "other dtypes", (torch.rand(4), x, torch.ones(4) > 0)
    yield "ids beyond any table", (torch.full((4,), 2**40), x, torch.full((4,), float("nan")))
    yield "a string", ("ids", x, object())
    yield "the same tensor", (x, x, x)
