"""A ranker that sorts its candidates by Python's sorted(): each call its own order."""

import torch
from torch import nn

KIND = "control flow"


class Ranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Sequential(nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 1))
        self.mix = nn.Sequential(nn.Linear(36, 48), nn.GELU(), nn.Linear(48, 6))

    def forward(self, candidates):
        scores = self.score(candidates)[:, 0]
        order = sorted(range(len(candidates)), key=lambda number: -float(scores[number]))
        return self.mix(candidates[order[:3]].flatten())


def make():
    return Ranker().eval()


def example():
    return (torch.randn(6, 12),)


def calls():
    for number in range(4):
        yield f"fresh {number}", (torch.randn(6, 12),)
    yield "in the other order", (example()[0].flip(0),)
