"""A net that counts its calls and rows in a dict without using them: the user reads it."""

import torch
from torch import nn

KIND = "state"


class Metered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out, self.usage = nn.Linear(48, 4), {"calls": 0, "rows": 0}

    def forward(self, x):
        self.usage["calls"] += 1
        self.usage["rows"] += len(x)
        return self.out(self.body(x))


def make():
    return Metered().eval()


def example():
    return (torch.randn(3, 12),)


def read(net):
    return net(torch.ones(3, 12)), dict(net.usage)


def calls():
    yield "one more", (torch.randn(3, 12),)
    yield "read", read
    yield "read again", read
