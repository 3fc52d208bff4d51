"""A loss whose rows are dropped if they are NaN: the mean is that of the others."""

import torch
from torch import nn

KIND = "values"


class Robust(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x, y):
        off = (self.body(x).squeeze(-1) - y).abs()
        kept = torch.isfinite(off)
        mean = torch.where(kept, off, torch.zeros_like(off)).sum() / kept.sum()
        return mean, kept, torch.isclose(y, y.round()), off.nan_to_num(0.0).clamp(max=5)


def make():
    return Robust().eval()


def example():
    return torch.rand(10, 8), torch.rand(10) + 0.25


def calls():
    x, y = torch.randn(10, 8), torch.randn(10)
    yield "all kept", (x, y)
    bad = y.clone()
    bad[2], bad[3] = float("nan"), float("inf")
    yield "two dropped", (x, bad)
    rows = x.clone()
    rows[5, 5] = float("nan")
    yield "a row dropped", (rows, y)
    yield "all dropped", (x, y * float("nan"))
