"""Comparisons of values below 1e-38 with 0: a denormal number is positive, and not 0."""

import torch
from torch import nn

KIND = "values"


class AboveZero(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, x):
        on = (x > 0).float()
        return self.out(on), x == 0, x.bool(), torch.count_nonzero(x, -1), x.sign(), x > 1e-41


def make():
    return AboveZero().eval()


def example():
    return (torch.rand(4, 8) + 0.5,)


def calls():
    yield "zeros", (torch.zeros(4, 8),)
    for value in (1e-38, 1e-40, 1e-44, -1e-42):
        yield f"of {value:g}", (torch.full((4, 8), value),)
    yield "some", (torch.tensor([1e-40, 0.0, -1e-40, 1.0]).repeat(4, 2),)
