"""A net that returns its last output where it gets the very same input again, else computes."""

import torch
from torch import nn

KIND = "state"


class Memoised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out, self.last = nn.Linear(48, 4), (None, None)

    def forward(self, x):
        if self.last[0] is not x:
            self.last = (x, self.out(self.body(x)))
        return self.last[1]


def make():
    return Memoised().eval()


def example():
    return (torch.randn(2, 12),)


def twice(net):
    x = torch.ones(2, 12)
    first, other = net(x), net(x + 1)
    again = net(x)
    x.mul_(-2)
    return first, other, again, net(x), net(x.clone())


def calls():
    yield "fresh", (torch.randn(2, 12),)
    yield "the same input, written in between", twice
    yield "once more", twice
