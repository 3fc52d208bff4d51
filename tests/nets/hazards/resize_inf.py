"""Resized images with NaN, infinite and large pixels, corners aligned or not, in several modes."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Resize(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(2, 3, 1)

    def forward(self, x):
        h = self.stem(x)
        return (
            F.interpolate(h, scale_factor=2.0, mode="nearest"),
            F.interpolate(h, size=(5, 7), mode="nearest-exact"),
            F.interpolate(h, size=(13, 9), mode="bilinear", align_corners=True),
            F.interpolate(h, size=(13, 9), mode="bilinear", align_corners=False),
            F.interpolate(h, scale_factor=1.5, mode="bicubic", align_corners=False),
            F.interpolate(h, size=(3, 4), mode="area"),
        )


def make():
    return Resize().eval()


def example():
    return (torch.rand(1, 2, 8, 8),)


def calls():
    for value in (float("nan"), float("inf"), 1e20):
        x = torch.rand(1, 2, 8, 8)
        x[0, 0, 3, 5] = value
        yield f"one pixel of {value}", (x,)
    yield "another size", (torch.randn(1, 2, 5, 11),)
    yield "one pixel alone", (torch.randn(1, 2, 1, 1),)
