"""Real arguments whose memory holds the negative numbers: imaginary parts of conjugates."""

import torch
from torch import nn

KIND = "form"


def make():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()


def example():
    return (torch.randn(4, 8),)


def negated(*shape):
    return torch.randn(*shape, dtype=torch.complex64).conj().imag


def calls():
    yield "negated", (negated(4, 8),)
    yield "the same numbers, plain", (negated(4, 8).resolve_neg(),)
    yield "strided like the example", (negated(4, 8).resolve_neg().clone(),)
    yield "whether it is", lambda net: net(negated(4, 8)).is_neg()
