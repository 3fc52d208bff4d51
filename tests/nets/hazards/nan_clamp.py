"""Bounded activations of NaN and infinities: a NaN stays NaN, an infinity becomes the bound."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Bounded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(12) + 0.5)

    def forward(self, x):
        x = x * self.scale
        return (
            x.clamp(-1, 1),
            x.clamp(min=0.25),
            x.clamp(max=0.75),
            F.hardtanh(x, -0.5, 2.0),
            F.relu6(x),
            F.hardsigmoid(x),
            F.hardshrink(x, 0.3),
            F.softshrink(x, 0.3),
            F.threshold(x, 0.1, -7.0),
        )


def make():
    return Bounded().eval()


def example():
    return (torch.rand(5, 12),)


def calls():
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, 1e30, -1e30])
    yield "negative and large", (100 * torch.randn(5, 12),)
    yield "special values", (special.repeat(5, 2),)
    yield "all NaN", (torch.full((5, 12), float("nan")),)
    yield "all minus infinity", (torch.full((5, 12), -float("inf")),)
