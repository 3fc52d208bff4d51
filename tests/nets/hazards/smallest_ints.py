"""Absolute values, signs and negatives of the smallest numbers, which have no opposite."""

import torch
from torch import nn

KIND = "values"


class Smallest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, long, short):
        return (
            long.abs(),
            -long,
            long.sign(),
            short.abs(),
            -short,
            long.float() * self.scale,
            long.abs().clamp(max=2**40),
            long.amin(-1),
        )


def make():
    return Smallest().eval()


def example():
    return torch.randint(1, 50, (3, 6)), torch.randint(1, 50, (3, 6), dtype=torch.int32)


def calls():
    long, short = torch.randint(-50, 50, (3, 6)), torch.randint(-50, 50, (3, 6), dtype=torch.int32)
    yield "negative", (long, short)
    yield "near the smallest", (-(2**63) + long.abs(), -(2**31) + short.abs())
    yield "the smallest", (torch.full((3, 6), -(2**63)), torch.full((3, 6), -(2**31)).int())
    yield "the largest", (torch.full((3, 6), 2**63 - 1), torch.full((3, 6), 2**31 - 1).int())
