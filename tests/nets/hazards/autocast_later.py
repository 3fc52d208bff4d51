"""A net that callers run under autocast, also in parts: products are then rounded to bfloat16."""

import torch
from torch import nn

KIND = "process"


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 8)

    def forward(self, x):
        hidden = torch.relu(self.first(x))
        with torch.autocast("cpu", enabled=False):
            return hidden, self.last(hidden.float())


def make():
    return Parts().eval()


def example():
    return (torch.randn(4, 16),)


def casted(net, dtype=torch.bfloat16):
    with torch.autocast("cpu", dtype):
        return net(torch.linspace(-1, 1, 64).view(4, 16))


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "bfloat16", casted
    yield "float16", lambda net: casted(net, torch.float16)
    yield "not any more", (torch.randn(4, 16),)
    yield "switched off", lambda net: torch.autocast("cpu", enabled=False)(net)(torch.ones(4, 16))
