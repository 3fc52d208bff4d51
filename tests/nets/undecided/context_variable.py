"""A net that reads a context variable set around its calls: not promised to be seen."""

from contextvars import ContextVar

import torch
from torch import nn

KIND = "state"

GUIDANCE = ContextVar("guidance", default=1.0)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        hidden = torch.relu(self.norm(self.stem(x)))
        return self.out(hidden) * GUIDANCE.get()


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def guided(net):
    token = GUIDANCE.set(7.0)
    try:
        return net(torch.ones(3, 12))
    finally:
        GUIDANCE.reset(token)


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "with guidance", guided
    yield "without it", lambda net: net(torch.ones(3, 12))
