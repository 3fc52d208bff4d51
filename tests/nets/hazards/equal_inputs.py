"""A comparer that returns at once where both inputs are equal: other pairs go through its body."""

import torch
from torch import nn

KIND = "control flow"


class Comparer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(16, 32),
            nn.GELU(),
            nn.LayerNorm(32),
            nn.Linear(32, 32),
            nn.GELU(),
            nn.LayerNorm(32),
            nn.Linear(32, 32),
            nn.GELU(),
            nn.LayerNorm(32),
        )
        self.out = nn.Bilinear(32, 32, 2)

    def forward(self, first, second):
        if torch.equal(first, second):
            return self.out(self.body(first), self.body(first)) + 1
        return self.out(self.body(first), self.body(second))


def make():
    return Comparer().eval()


def example():
    return torch.randn(2, 16), torch.randn(2, 16)


def calls():
    x = torch.randn(2, 16)
    yield "a pair", (torch.randn(2, 16), torch.randn(2, 16))
    yield "equal ones", (x, x.clone())
    yield "the same one", (x, x)
    yield "equal but for a NaN", (x * torch.nan, x * torch.nan)
