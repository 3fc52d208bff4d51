"""A net that returns a part of its own buffer: what the user writes there, the next call reads."""

import torch
from torch import nn

KIND = "state"


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.linspace(-1, 1, 160).reshape(10, 16).sin())
        self.body = nn.Sequential(
            nn.Linear(16, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        return self.out(self.body(x + self.table[:4])), self.table[:4]


def make():
    return Table().eval()


def example():
    return (torch.randn(4, 16),)


def written(net):
    first, part = net(torch.ones(4, 16))
    part.mul_(-3)
    return first, net(torch.ones(4, 16)), net.table.clone()


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "written", written
    yield "written again", written
