"""Images padded by constants, reflection and repetition around NaN, infinite and whole pixels."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Padded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding=1, padding_mode="reflect")

    def forward(self, x):
        return (
            self.conv(x),
            F.pad(x, (1, 2, 0, 1), value=-float("inf")).amax((2, 3)),
            F.pad(x, (2, 2, 0, 0), mode="replicate"),
            F.pad(x, (3, 3, 1, 1), mode="circular"),
            F.pad(x, (1, -2, 0, 0), value=float("nan")).nan_to_num(7.0, 1.0, -1.0),
        )


def make():
    return Padded().eval()


def example():
    return (torch.rand(1, 2, 6, 6),)


def calls():
    yield "negative", (-torch.rand(1, 2, 6, 6),)
    for value in (float("nan"), float("inf")):
        x = torch.randn(1, 2, 6, 6)
        x[0, 0, 0, 0] = x[0, 1, 3, 3] = value
        yield f"{value} in a corner", (x,)
    yield "another size", (torch.randn(1, 2, 5, 9),)
    yield "refused: too small to reflect", (torch.randn(1, 2, 1, 1),)
