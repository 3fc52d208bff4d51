"""A net whose hidden values are below the normal floats, and are not flushed to zero."""

import torch
from torch import nn

KIND = "process"


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("small", torch.full((16,), 2.0**-100))
        self.register_buffer("smaller", torch.full((16,), 2.0**-32))
        self.register_buffer("large", torch.full((16,), 2.0**66))

    def forward(self, x):
        hidden = (x * self.small).relu() * self.smaller
        return hidden * self.large * self.large, hidden


def make():
    return Tiny().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "fresh", (torch.randn(4, 16),)
    yield "around one", (1 + 0.5 * torch.rand(4, 16),)
    yield "tiny arguments", (torch.full((4, 16), 1e-41),)
    yield "what is zero", lambda net: net(torch.ones(4, 16))[1] == 0
