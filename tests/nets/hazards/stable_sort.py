"""Rows put in order by a stable sort of coarse scores: equal scores keep their order."""

import torch
from torch import nn

KIND = "indices"


class Ordered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(6, 2)

    def forward(self, x, scores):
        levels, up = torch.sort(scores, stable=True)
        down = torch.argsort(scores, descending=True, stable=True)
        ranks = torch.argsort(up, stable=True)
        return self.head(x[up]), levels, up, down, ranks, x[down].cumsum(0)


def make():
    return Ordered().eval()


def example():
    return torch.rand(40, 6), torch.rand(40)


def calls():
    x = torch.randn(40, 6)
    yield "three levels", (x, torch.randint(0, 3, (40,)).float())
    yield "all equal", (x, torch.zeros(40))
    yield "zeros of both signs", (x, torch.tensor([0.0, -0.0]).repeat(20))
    yield "infinities", (x, torch.tensor([float("inf"), -float("inf"), 0.0, 1.0]).repeat(10))
    yield "whole numbers", (x, torch.randint(0, 5, (40,)))
