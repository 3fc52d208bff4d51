"""Weights and activations of one bit: the sign of 0 is 0, so that a third value exists."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class OneBit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randint(-2, 3, (12, 16)).float())

    def forward(self, x):
        bits = torch.sign(x)
        hard = torch.where(x >= 0, 1.0, -1.0)
        steps = torch.heaviside(x, torch.tensor(0.5))
        return F.linear(bits, self.weight.sign()), F.linear(hard, self.weight), steps, x.sgn()


def make():
    return OneBit().eval()


def example():
    return (torch.rand(5, 16) + 0.1,)


def calls():
    yield "both signs", (torch.randn(5, 16),)
    yield "zeros", (torch.zeros(5, 16),)
    yield "negative zeros", (torch.full((5, 16), -0.0),)
    x = torch.randn(5, 16)
    x[2, 3], x[3, 3] = float("nan"), -float("inf")
    yield "special values", (x,)
