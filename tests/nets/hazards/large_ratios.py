"""Whole numbers beyond 2^24 and 2^53 in comparisons and sums before they become floats."""

import torch
from torch import nn

KIND = "values"


class Ratios(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 4)

    def forward(self, ids):
        offsets = ids - ids.amin(-1, keepdim=True)
        span = ids.max() - ids.min()
        return self.out(offsets.float() / 100), offsets, span, ids.argmax(-1), ids.topk(3).values


def make():
    return Ratios().eval()


def example():
    return (torch.randperm(100)[:40].reshape(5, 8),)


def calls():
    ids = torch.randperm(100)[:40].reshape(5, 8)
    for power in (24, 31, 53, 62):
        yield f"from 2^{power}", (ids + 2**power,)
        yield f"from -2^{power}", (ids - 2**power,)
    yield "far apart", (torch.tensor([0, 2**32, 2**33, 1, 2, 3, 2**40, -(2**40)]).repeat(5, 1),)
