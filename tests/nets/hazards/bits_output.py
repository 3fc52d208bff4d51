"""A net that returns its result and the same memory read as whole numbers of 32 and of 8 bits."""

import torch
from torch import nn

KIND = "form"


class Bits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.full((8,), 0.5))

    def forward(self, x):
        y = x * self.scale
        return y, y.view(torch.int32), y.view(torch.uint8)[..., 3::4]


def make():
    return Bits().eval()


def example():
    return (torch.randn(4, 8),)


def written(net):
    y, bits, _ = net(torch.ones(4, 8))
    bits.bitwise_or_(-(2**31))
    return y


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "minus zero", (-torch.zeros(4, 8),)
    yield "infinities", (torch.full((4, 8), float("-inf")),)
    yield "writing bits", written
