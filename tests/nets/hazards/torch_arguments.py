"""Arguments that are dtypes, slices, ranges, shapes, enum members: each has its own result."""

import enum

import torch
from torch import nn

KIND = "form"


class Pool(enum.Enum):
    MEAN = "mean"
    SUM = "sum"


class Cast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, dtype, part, pool, dims=(-1,)):
        y = self.net(x)[part].to(dtype)
        return getattr(y, pool.value)(dims)


def make():
    return Cast().eval()


def example():
    return torch.randn(4, 8), torch.float32, slice(0, 2), Pool.MEAN


def calls():
    x = torch.randn(4, 8)
    yield "another dtype", (x, torch.float64, slice(0, 2), Pool.MEAN)
    yield "another slice", (x, torch.float32, slice(None, None, 2), Pool.MEAN)
    yield "a range", (x, torch.float32, [1, 3], Pool.MEAN)
    yield "a place", (x, torch.float32, 2, Pool.MEAN)
    yield "another member", (x, torch.float32, slice(0, 2), Pool.SUM)
    yield "other dimensions", (x, torch.float32, slice(0, 2), Pool.SUM, (0, 1))
    yield "refused: means of whole numbers", (x, torch.int64, slice(0, 2), Pool.MEAN)
