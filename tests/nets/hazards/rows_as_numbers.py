"""A net that makes a new tensor of numbers it read by tolist(): each call its own numbers."""

import torch
from torch import nn

KIND = "control flow"


class Summaries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(15, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def forward(self, x):
        numbers = []
        for row in x.tolist():
            ordered = sorted(row)
            numbers.append([ordered[0], ordered[len(row) // 2], ordered[-1]])
        return self.body(torch.cat([x, torch.tensor(numbers, dtype=x.dtype)], -1))


def make():
    return Summaries().eval()


def example():
    return (torch.randn(4, 12),)


def calls():
    for number in range(3):
        yield f"fresh {number}", (torch.randn(4, 12),)
    yield "large", (50 * torch.randn(4, 12),)
