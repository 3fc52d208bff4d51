"""Largest and smallest values where some are NaN: the result is NaN, never the number beside it."""

import torch
from torch import nn

KIND = "values"


class Extremes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(24, 24)

    def forward(self, x, y):
        h = self.proj(x)
        return (
            h.amax(-1),
            h.amin(-1),
            x.max(-1).values,
            x.min(0).values,
            torch.maximum(x, y),
            torch.minimum(x, y),
            x.max(),
        )


def make():
    return Extremes().eval()


def example():
    return torch.rand(6, 24), torch.rand(6, 24)


def calls():
    x, y = torch.randn(6, 24), torch.randn(6, 24)
    yield "no NaN", (x, y)
    x, y = x.clone(), y.clone()
    x[0, 0], x[3, 23], y[1, 4] = float("nan"), float("nan"), float("nan")
    yield "a NaN first, last and between", (x, y)
    yield "NaN in both", (torch.full((6, 24), float("nan")), y)
    yield "infinities", (x.nan_to_num(float("inf")), y.nan_to_num(-float("inf")))
