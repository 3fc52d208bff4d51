"""A regressor that replaces missing features, which are NaN, by learned values and flags."""

import torch
from torch import nn

KIND = "values"


class Impute(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fill = nn.Parameter(torch.randn(10))
        self.body = nn.Sequential(nn.Linear(20, 64), nn.GELU(), nn.Linear(64, 1))

    def forward(self, x):
        missing = torch.isnan(x) | ~torch.isfinite(x)
        filled = torch.where(missing, self.fill, x)
        return self.body(torch.cat([filled, missing.float()], -1))


def make():
    return Impute().eval()


def example():
    return (torch.rand(8, 10),)


def calls():
    yield "nothing missing", (torch.randn(8, 10),)
    x = torch.randn(8, 10)
    x[1, 2] = x[4, 9] = float("nan")
    yield "two missing", (x.clone(),)
    x[5, 0], x[6, 1] = float("inf"), -float("inf")
    yield "infinities as well", (x,)
    yield "all missing", (torch.full((8, 10), float("nan")),)
