"""Booleans combined, counted and turned into numbers: sums of them are whole numbers."""

import torch
from torch import nn

KIND = "values"


class Booleans(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(12, 3)

    def forward(self, a, b):
        either, both = a | b, a & b
        counts = a.sum(-1) + b.sum(-1)
        return (
            self.out(either.float()),
            either | both,
            a ^ b,
            ~a,
            counts,
            a.long().cumsum(-1),
            a.all(-1),
            b.any(0),
            a.float() - b.float(),
            a.long() * 2 - b.long(),
            (a & b) | (~a & ~b),
            a > b,
        )


def make():
    return Booleans().eval()


def example():
    return torch.ones(4, 12, dtype=torch.bool), torch.zeros(4, 12, dtype=torch.bool)


def calls():
    yield "mixed", (torch.rand(4, 12) > 0.5, torch.rand(4, 12) > 0.5)
    yield "all true", (torch.ones(4, 12, dtype=torch.bool), torch.ones(4, 12, dtype=torch.bool))
    yield "all false", (torch.zeros(4, 12, dtype=torch.bool), torch.zeros(4, 12, dtype=torch.bool))
