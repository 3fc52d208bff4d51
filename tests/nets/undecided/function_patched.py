"""A net that calls F.gelu, which is replaced in torch's module: not promised to be seen."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.norm, self.out = nn.Linear(12, 32), nn.LayerNorm(32), nn.Linear(32, 4)

    def forward(self, x):
        return self.out(F.gelu(self.norm(self.stem(x))))


def make():
    return Net().eval()


def example():
    return (torch.randn(3, 12),)


def patched(net):
    usual = F.gelu
    F.gelu = torch.sin
    try:
        return net(torch.ones(3, 12))
    finally:
        F.gelu = usual


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "with another function", patched
    yield "as it was", lambda net: net(torch.ones(3, 12))
