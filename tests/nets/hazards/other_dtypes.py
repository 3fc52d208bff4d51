"""Ops without weights on tensors of any dtype, on which their outputs and errors depend."""

import torch
from torch import nn

KIND = "form"


class Ops(nn.Module):
    def forward(self, x):
        return x // 2, x.sum(), x * 0.5, x == x.flatten()[0], x.cumsum(0).amax(-1)


def make():
    return Ops().eval()


def example():
    return (torch.randn(4, 6),)


def calls():
    numbers = torch.arange(-12, 12).view(4, 6)
    for name in ("int64", "int32", "int8", "uint8", "float64", "float16", "bfloat16"):
        yield name, (numbers.to(getattr(torch, name)),)
    yield "truth values", (numbers > 0,)
    yield "refused: complex numbers", (torch.randn(4, 6, dtype=torch.complex64),)
