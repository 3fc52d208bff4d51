"""Whole parts and fractions: towards zero, upwards and downwards, also of large numbers."""

import torch
from torch import nn

KIND = "values"


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(16, 4)

    def forward(self, x):
        whole = x.trunc()
        turns = (x / 0.25).floor() * 0.25
        return whole, x.frac(), x.ceil(), x.floor(), turns, self.table(x.floor().long() & 15)


def make():
    return Parts().eval()


def example():
    return (torch.rand(4, 8) * 8 + 0.1,)


def calls():
    quarters = torch.arange(-16, 16).reshape(4, 8) / 4
    yield "quarters", (quarters,)
    yield "negative", (-torch.rand(4, 8) * 8,)
    yield "beyond 2^24", (quarters * 2**25 + 1,)
    yield "beside whole numbers", (torch.nextafter(quarters * 4, torch.zeros(4, 8)),)
