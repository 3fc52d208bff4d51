"""Medians and maxima that skip NaN beside those that do not."""

import torch
from torch import nn

KIND = "values"


class Skipped(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.least = nn.Parameter(torch.tensor(-0.5))

    def forward(self, x, y):
        return (
            torch.fmax(x, y),
            torch.fmin(x, y),
            x.nanmedian(-1).values,
            x.median(-1).values,
            torch.fmax(x, self.least),
            torch.stack(torch.aminmax(y, dim=1)),
        )


def make():
    return Skipped().eval()


def example():
    return torch.rand(5, 15), torch.rand(5, 15)


def calls():
    x, y = torch.randn(5, 15), torch.randn(5, 15)
    yield "negative", (x, y)
    x = x.clone()
    x[0, 3] = x[1, 4:9] = x[2, :14] = float("nan")
    yield "some NaN", (x, y)
    x = x.clone()
    x[3] = float("nan")
    yield "a row of NaN", (x, x.flip(0))
    yield "infinities", (x.nan_to_num(float("inf")), -x.nan_to_num(float("inf")))
