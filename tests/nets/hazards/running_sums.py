"""Running sums and means: a NaN or an infinity holds from there on, and not before."""

import torch
from torch import nn

KIND = "values"


class Running(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(12) + 0.5)

    def forward(self, x):
        x = x * self.scale
        sums = x.cumsum(-1)
        steps = torch.arange(1, x.shape[-1] + 1)
        return sums, sums / steps, x.flip(-1).cumsum(-1).flip(-1), x.cumsum(0)


def make():
    return Running().eval()


def example():
    return (torch.rand(4, 12) + 0.1,)


def calls():
    yield "negative", (torch.randn(4, 12),)
    x = torch.randn(4, 12)
    x[0, 5], x[1, 3], x[2, 0] = float("nan"), float("inf"), -float("inf")
    yield "special values", (x.clone(),)
    x[1, 8], x[3, 4] = -float("inf"), 0.0
    yield "both infinities, and a zero", (x,)
    yield "ties", (torch.zeros(4, 12),)
    yield "large", (torch.full((4, 12), 90.0),)
