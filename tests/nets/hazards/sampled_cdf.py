"""Samples drawn by searching a running sum of weights: weights of 0 are never drawn."""

import torch
from torch import nn

KIND = "indices"


class Sample(nn.Module):
    def forward(self, weights, points):
        sums = weights.cumsum(-1)
        places = torch.searchsorted(sums, points * sums[:, -1:], right=True)
        held = places.clamp(max=weights.shape[-1] - 1)
        below = torch.searchsorted(sums, points)
        return places, weights.gather(-1, held), below


def make():
    return Sample().eval()


def example():
    return torch.randint(1, 5, (3, 10)).float(), torch.rand(3, 6)


def calls():
    weights = torch.randint(0, 3, (3, 10)).float()
    points = torch.randint(0, 9, (3, 6)) / 8
    yield "some of 0", (weights, points)
    yield "the last point", (weights, torch.ones(3, 6))
    yield "all of 0", (weights * 0, points)
    yield "one weight", (torch.eye(10)[:3].contiguous(), points)
    yield "whole points", (weights, torch.randint(-1, 20, (3, 6)).float())
