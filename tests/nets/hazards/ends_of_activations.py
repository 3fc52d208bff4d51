"""Activations where they change their form: thresholds, ends, large numbers."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Activations(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.PReLU(8)

    def forward(self, x):
        return (
            F.softplus(x),
            F.softplus(x, 2.0, 1.0),
            F.logsigmoid(x),
            F.hardswish(x),
            F.hardsigmoid(x),
            F.gelu(x, approximate="tanh"),
            F.mish(x),
            F.elu(x, 0.5),
            F.celu(x, 2.0),
            F.selu(x),
            F.hardshrink(x, 3.0),
            F.softshrink(x, 3.0),
            F.threshold(x, 3.0, -1.0),
            F.hardtanh(x, -3.0, 3.0),
            F.relu6(x),
            F.glu(x),
            self.slopes(x),
            torch.log1p(x.abs()),
            torch.expm1(x),
        )


def make():
    return Activations().eval()


def example():
    return (torch.randn(6, 8),)


def calls():
    yield "whole numbers", (torch.arange(48).reshape(6, 8) - 24.0,)
    yield "large", (torch.randn(6, 8) * 1e3,)
    yield "small", (torch.randn(6, 8) * 1e-4,)
    yield (
        "special values",
        (torch.tensor([[float("nan"), float("inf"), -float("inf"), -0.0] * 2] * 6),),
    )
