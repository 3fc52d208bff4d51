"""Signs copied from bits: -0 is negative to signbit and copysign, and 0 to sign."""

import torch
from torch import nn

KIND = "values"


class SignBits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.size = nn.Parameter(torch.rand(6) + 0.5)

    def forward(self, x):
        return torch.signbit(x), torch.copysign(self.size, x), x.sign(), torch.signbit(-x), x.abs()


def make():
    return SignBits().eval()


def example():
    return (torch.rand(4, 6) + 1.0,)


def calls():
    yield "negative", (-torch.rand(4, 6),)
    yield "zeros", (torch.tensor([0.0, -0.0]).repeat(4, 3),)
    nan = float("nan")
    yield "NaN and infinities", (torch.tensor([nan, float("inf"), -float("inf")]).repeat(4, 2),)
    yield "small", (torch.full((4, 6), -1e-44),)
