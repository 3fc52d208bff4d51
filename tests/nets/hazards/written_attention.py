"""Attention written out with an added mask: a row of minus infinities is NaN and then filled."""

import torch
from torch import nn

KIND = "values"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, keep):
        scores = self.q(x) @ self.k(x).mT / 4
        mask = torch.zeros_like(scores).masked_fill(~keep.unsqueeze(1), -float("inf"))
        shares = (scores + mask).softmax(-1)
        empty = shares.isnan().any(-1, keepdim=True)
        return shares.masked_fill(empty, 0.0) @ self.v(x), shares, empty


def make():
    return Attention().eval()


def example():
    return torch.rand(2, 6, 16), torch.ones(2, 6, dtype=torch.bool)


def calls():
    x, keep = torch.randn(2, 6, 16), torch.ones(2, 6, dtype=torch.bool)
    keep[0, 4:] = False
    yield "padded", (x, keep.clone())
    keep[1] = False
    yield "a row masked", (x, keep)
    yield "all masked", (x, torch.zeros(2, 6, dtype=torch.bool))
