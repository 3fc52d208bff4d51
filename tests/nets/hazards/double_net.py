"""A net in float64: to nine digits, and beyond the range of float32."""

import torch
from torch import nn

KIND = "values"


class Double(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x))), x.square().sum(-1), x.exp().log1p(), x.argmax(-1)


def make():
    return Double().eval().double()


def example():
    return (torch.randint(-4, 5, (6, 16)).double() / 4 + torch.arange(16) / 2,)


def calls():
    yield "fresh", (torch.randn(6, 16).double(),)
    yield "of 1e60", (1e60 * torch.randn(6, 16).double(),)
    yield "of 1e-60", (1e-60 * torch.randn(6, 16).double(),)
    yield "of 200", (200 + torch.rand(6, 16).double(),)
    yield "1e-12 apart", (1 + 1e-12 * torch.randperm(96).reshape(6, 16).double(),)
