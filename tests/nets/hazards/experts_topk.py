"""Experts chosen by the two largest gates: tokens of zeros tie between all experts."""

import torch
from torch import nn

KIND = "indices"


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(16, 6, bias=False)
        self.up = nn.Parameter(torch.randn(6, 16, 24) / 4)
        self.down = nn.Parameter(torch.randn(6, 24, 16) / 5)

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2)
        weights = weights / weights.sum(-1, keepdim=True)
        h = torch.relu(torch.einsum("td,tkde->tke", x, self.up[chosen]))
        out = torch.einsum("tke,tked->tkd", h, self.down[chosen])
        return (out * weights.unsqueeze(-1)).sum(1), chosen


def make():
    return Experts().eval()


def example():
    return (torch.rand(10, 16) + 0.1,)


def calls():
    yield "fresh", (torch.randn(10, 16),)
    yield "zeros", (torch.zeros(10, 16),)
    x = torch.randn(10, 16)
    x[3], x[7] = 0.0, 0.0
    yield "two tokens of zeros", (x.clone(),)
    x[5, 5] = float("nan")
    yield "a NaN", (x,)
    yield "gates of 0 and 1", (1e4 * torch.randn(10, 16),)
