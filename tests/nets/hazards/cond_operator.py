"""A net with torch.cond on a value: both branches stay in the graph, each call takes its own."""

import torch
from torch import nn

KIND = "control flow"


class Conditional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.small = nn.Sequential(nn.Linear(12, 32), nn.GELU(), nn.Linear(32, 12))
        self.large = nn.Sequential(
            nn.LayerNorm(12), nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 12)
        )
        self.out = nn.Linear(12, 4)

    def forward(self, x):
        hidden = torch.cond(
            x.abs().mean() > 2, lambda y: self.large(y), lambda y: self.small(y), (x,)
        )
        return self.out(torch.relu(hidden))


def make():
    return Conditional().eval()


def example():
    return (torch.randn(3, 12),)


def calls():
    for scale in (1.0, 10.0, 0.1, 100.0):
        yield f"inputs of scale {scale}", (scale * torch.randn(3, 12),)
    yield "NaN", (torch.full((3, 12), torch.nan),)
