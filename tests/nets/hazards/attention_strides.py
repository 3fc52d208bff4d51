"""Attention whose heads lie next to each other in memory, so that callers join them by a view."""

import torch
from torch import nn
from torch.nn import functional

KIND = "form"


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        return functional.scaled_dot_product_attention(q, k, v, mask)


def make():
    return Heads().eval()


def example():
    return (torch.randn(2, 10, 32),)


def calls():
    x = torch.randn(2, 10, 32)
    mask = torch.ones(10, 10, dtype=torch.bool).tril()
    yield "fresh", (x,)
    yield "masked", (x, mask)
    yield "longer", (torch.randn(2, 17, 32),)
    yield "joined by a view", lambda net: net(x).transpose(1, 2).view(2, 10, 32)
    yield "strides with a mask", lambda net: list(net(x, mask).stride())
