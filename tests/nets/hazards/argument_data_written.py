"""A net that clamps its argument through `.data`, which no count of updates shows."""

import torch
from torch import nn

KIND = "form"


class Clamped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        x.data.clamp_(min=0)
        return self.net(x)


def make():
    return Clamped().eval()


def example():
    return (torch.rand(4, 16),)


def calls():
    yield "negative numbers", (torch.randn(4, 16),)
    yield "infinities", (torch.tensor([1.0, -2.0, float("-inf"), 3.0]).repeat(4, 4),)
    yield "a slice of a larger tensor", (torch.randn(8, 16)[::2],)
