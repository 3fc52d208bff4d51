"""A classifier that returns early where it is sure: each call takes its own branch."""

import torch
from torch import nn

KIND = "control flow"


class EarlyExit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.easy = nn.Linear(16, 32), nn.Linear(32, 4)
        self.deep = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))

    def forward(self, x):
        hidden = torch.relu(self.stem(x))
        early = self.easy(hidden)
        if early.softmax(-1).max() > 0.5:
            return early
        return self.deep(hidden)


def make():
    return EarlyExit().eval()


def example():
    return (0.1 * torch.randn(1, 16),)


def calls():
    for scale in (0.1, 1.0, 10.0, 100.0):
        yield f"inputs of scale {scale}", (scale * torch.randn(1, 16),)
