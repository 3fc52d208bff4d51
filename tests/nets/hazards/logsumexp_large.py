"""Logarithms of sums of exponentials: finite for large values, minus infinity for nothing."""

import torch
from torch import nn

KIND = "values"


class LogSum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.rand(6))

    def forward(self, x):
        y = x + self.mix
        pair = torch.logaddexp(y[:, ::2].contiguous(), y[:, 1::2].contiguous())
        return y.logsumexp(-1), y.logsumexp((0, 1)), pair, y.exp().sum(-1).log()


def make():
    return LogSum().eval()


def example():
    return (torch.rand(5, 6),)


def calls():
    for scale in (50.0, 500.0, 1e6):
        yield f"of {scale:g}", (scale * torch.randn(5, 6),)
    x = torch.randn(5, 6)
    x[0, 1:3] = x[1] = -float("inf")
    yield "minus infinities", (x.clone(),)
    x[2, 2], x[3, 3] = float("inf"), float("nan")
    yield "an infinity and a NaN", (x,)
