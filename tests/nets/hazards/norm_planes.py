"""Instance and group norms of constant planes: 0 before the bias."""

import torch
from torch import nn

KIND = "values"


class Planes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.group = nn.GroupNorm(2, 8)
        self.instance = nn.InstanceNorm2d(8, affine=True)
        with torch.no_grad():
            self.group.bias.copy_(torch.randn(8))
            self.instance.bias.copy_(torch.randn(8))

    def forward(self, x):
        x = torch.relu(x)
        return self.group(x), self.instance(x)


def make():
    return Planes().eval()


def example():
    return (torch.rand(2, 8, 8, 8),)


def calls():
    yield "negative", (-torch.rand(2, 8, 8, 8),)
    for value in (0.0, 0.5, 2.0):
        yield f"planes of {value:g}", (torch.full((2, 8, 8, 8), value),)
    x = torch.randn(2, 8, 8, 8)
    x[0, 3], x[1, 2, 0, 0] = 2.0, float("nan")
    yield "one constant plane and a NaN", (x,)
