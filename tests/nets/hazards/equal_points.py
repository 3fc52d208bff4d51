"""Distances of equal points, 0, and of near points far from 0, which must not cancel."""

import torch
from torch import nn

KIND = "values"


class Distances(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randint(-8, 8, (10, 3)).float())

    def forward(self, x):
        mode = "donot_use_mm_for_euclid_dist"
        own = torch.cdist(x, x, compute_mode=mode)
        far = torch.cdist(x, self.centres, compute_mode=mode)
        return own, far, (own == 0).sum(-1)


def make():
    return Distances().eval()


def example():
    return (torch.rand(12, 3) * 4,)


def calls():
    steps = torch.randint(0, 4, (12, 3)).float()
    yield "equal", (steps * 0 + 1,)
    yield "whole", (steps,)
    yield "far away", (steps + 4096.0,)
    yield "very far away", (steps + 2.0**20,)
    x = steps.clone()
    x[2, 2], x[3, 1] = float("nan"), float("inf")
    yield "special values", (x,)
