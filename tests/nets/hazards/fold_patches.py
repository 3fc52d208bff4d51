"""Overlapping patches taken out, weighed and added up again: an infinity stays in its patches."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(18, 1))

    def forward(self, x):
        patches = F.unfold(x, 3, padding=1, stride=2)
        weighed = patches * self.weight
        whole = F.fold(weighed, x.shape[-2:], 3, padding=1, stride=2)
        count = F.fold(torch.ones_like(patches), x.shape[-2:], 3, padding=1, stride=2)
        return whole / count, weighed.amax(1), x.unfold(2, 4, 3).sum(-1)


def make():
    return Patches().eval()


def example():
    return (torch.rand(1, 2, 9, 9),)


def calls():
    yield "negative", (-torch.rand(1, 2, 9, 9),)
    for value in (float("nan"), float("inf"), 1e20):
        x = torch.randn(1, 2, 9, 9)
        x[0, 0, 4, 4] = x[0, 1, 0, 8] = value
        yield f"two pixels of {value}", (x,)
    yield "another size", (torch.randn(1, 2, 7, 11),)
