"""A gain of 2^100 on values below 1e-38: they are kept, not flushed to 0."""

import torch
from torch import nn

KIND = "values"


class Gain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gain", torch.full((8,), 2.0**100))
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        small = x * 2.0**-40
        high = small * self.gain
        return high, self.out(high), small


def make():
    return Gain().eval()


def example():
    return (torch.rand(4, 8) + 0.5,)


def calls():
    for exponent in (-80, -90, -100, -105):
        yield f"of 2^{exponent}", (2.0**exponent * torch.randint(1, 8, (4, 8)),)
    yield "zeros", (torch.zeros(4, 8),)
