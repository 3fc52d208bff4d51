"""A net that takes numpy arrays and numbers besides tensors; their values count at each call."""

import numpy as np
import torch
from torch import nn

KIND = "form"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, offset, scale=1.0):
        return self.net(torch.as_tensor(x)) * float(scale) + torch.from_numpy(offset)


def make():
    return Scaled().eval()


def example():
    return torch.randn(4, 8), np.zeros(8, np.float32), np.float32(2)


def changed(net):
    x, offset = np.ones((4, 8), np.float32), np.zeros(8, np.float32)
    before = net(x, offset)
    offset += 1
    x *= 2
    return before, net(x, offset)


def calls():
    x, offset = torch.randn(4, 8), np.arange(8, dtype=np.float32)
    yield "another array", (x, offset, np.float32(2))
    yield "another scale", (x, offset, np.float64(3))
    yield "all arrays", (x.numpy(), offset)
    yield "arrays that are changed between calls", changed
    yield "float64", (x, np.ones(8))
    yield "refused: a tensor for an array", (x, torch.ones(8))
