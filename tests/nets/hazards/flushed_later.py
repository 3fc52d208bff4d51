"""A net whose caller has tiny numbers flushed to zero for some calls, and not for others."""

import torch
from torch import nn

KIND = "process"


class Tiny(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("small", torch.full((16,), 2.0**-130))

    def forward(self, x):
        return (x * self.small) * 2.0**100 * 2.0**30


def make():
    return Tiny().eval()


def example():
    return (torch.randn(4, 16),)


def flushed(net):
    if not torch.set_flush_denormal(True):
        return None
    try:
        return net(torch.ones(4, 16))
    finally:
        torch.set_flush_denormal(False)


def calls():
    yield "not flushed", (torch.randn(4, 16),)
    yield "flushed", flushed
    yield "not flushed again", (torch.randn(4, 16),)
    yield "larger", (1e6 * torch.randn(4, 16),)
