"""Arguments that are strings, None, truth values and numbers: each value has its own result."""

import torch
from torch import nn

KIND = "form"


class Modes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, mode, count=2, factor=1.0, mask=None):
        y = self.net(x)[:, :count] * factor
        if mask is not None:
            y = y * mask
        return y.mean(-1) if mode == "mean" else y.amax(-1)


def make():
    return Modes().eval()


def example():
    return torch.randn(4, 8), "mean", 2, 1.0, None


def calls():
    x = torch.randn(4, 8)
    yield "another string", (x, "max", 2, 1.0, None)
    yield "another count", (x, "mean", 5, 1.0, None)
    yield "a negative count", (x, "mean", -1, 1.0, None)
    yield "another factor", (x, "mean", 2, 1.5, None)
    yield "a factor that is nearly the same", (x, "mean", 2, 1.0 + 2**-20, None)
    yield "minus zero", lambda net: net(x, "mean", 2, -0.0, None).signbit()
    yield "not a number", (x, "mean", 2, float("nan"), None)
    yield "a whole number for the factor", (x, "mean", 2, 1, None)
    yield "True for the count", (x, "mean", True, 1.0, None)
    yield "a mask", (x, "mean", 2, 1.0, torch.ones(4, 1))
    yield "False for a mask", (x, "mean", 2, 1.0, False)
    yield "no mode", (x, None)
    yield "refused: a count with a fraction", (x, "mean", 2.0)
