"""A net that runs its head on the rows above a threshold: as many rows as each call has."""

import torch
from torch import nn

KIND = "control flow"


class Picker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 1))
        self.head = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, x):
        scores = self.score(x)[:, 0]
        kept = scores > scores.mean()
        return self.head(x[kept]), torch.nonzero(kept)[:, 0]


def make():
    return Picker().eval()


def example():
    return (torch.randn(10, 16),)


def calls():
    for number in range(4):
        yield f"fresh {number}", (torch.randn(10, 16),)
    yield "equal rows: none is above the mean", (torch.zeros(10, 16),)
