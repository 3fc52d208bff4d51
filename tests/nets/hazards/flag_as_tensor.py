"""A net with a bool tensor for a flag: `if flag` takes the branch of each call."""

import torch
from torch import nn

KIND = "control flow"


class Flagged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.LayerNorm(16)
        )
        self.second = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))

    def forward(self, flag, x):
        if flag:
            return self.first(x) * 2
        return self.second(x)


def make():
    return Flagged().eval()


def example():
    return torch.tensor(True), torch.randn(4, 16)


def calls():
    for flag in (True, False, True):
        yield str(flag), (torch.tensor(flag), torch.randn(4, 16))
    yield "a flag of one dimension", (torch.tensor([False]), torch.randn(4, 16))
    yield "refused: two flags", (torch.tensor([True, False]), torch.randn(4, 16))
