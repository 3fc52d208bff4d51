"""Layer norms of constant rows: 0 before the bias, whatever the constant."""

import torch
from torch import nn

KIND = "values"


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.small = nn.LayerNorm(32), nn.LayerNorm(32, eps=1e-12)
        self.rms = nn.RMSNorm(32, eps=1e-6)
        with torch.no_grad():
            self.norm.bias.copy_(torch.randn(32))
            self.small.bias.copy_(torch.randn(32))

    def forward(self, x):
        return self.norm(x), self.small(x), self.rms(x)


def make():
    return Normed().eval()


def example():
    return (torch.rand(6, 32),)


def calls():
    for value in (0.0, 1.0, -0.5, 1024.0, 2.0**-20, 2.0**40):
        yield f"rows of {value:g}", (torch.full((6, 32), value),)
    x = torch.randn(6, 32)
    x[2], x[3, 0], x[4, 0] = 0.25, float("inf"), float("nan")
    yield "a constant row, an infinity and a NaN", (x,)
