"""A flag for missing values written as `x != x`, which is true for NaN alone."""

import torch
from torch import nn

KIND = "values"


class Flagged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        missing = x != x
        known = x == x
        below = ~(x >= 0)
        filled = x.masked_fill(missing, 0.0)
        flags = torch.cat([missing.sum(-1, keepdim=True), known.sum(-1, keepdim=True)], -1)
        return self.head(filled), flags, below, (x < 1) | (x >= 1), torch.sign(filled)


def make():
    return Flagged().eval()


def example():
    return (torch.rand(7, 12) + 0.1,)


def calls():
    yield "negative", (torch.randn(7, 12),)
    x = torch.randn(7, 12)
    x[0, 0] = x[3, 5] = float("nan")
    yield "two missing", (x.clone(),)
    x[4, 4] = float("inf")
    yield "an infinity", (x,)
    yield "all missing", (torch.full((7, 12), float("nan")),)
