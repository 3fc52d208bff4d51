"""A net with adaptive depth: it adds layers until its halting score reaches 1."""

import torch
from torch import nn

KIND = "control flow"


class Pondering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            for _ in range(6)
        )
        self.halt = nn.Linear(16, 1)

    def forward(self, x):
        score = torch.zeros((), dtype=x.dtype)
        mixed = torch.zeros_like(x)
        for layer in self.layers:
            x = x + layer(x)
            share = torch.minimum(torch.sigmoid(self.halt(x)).mean(), 1 - score)
            mixed, score = mixed + share * x, score + share
            if score >= 1:
                break
        return mixed


def make():
    return Pondering().eval()


def example():
    return (torch.randn(3, 16),)


def calls():
    for scale in (1.0, 10.0, -10.0, 40.0, 0.01):
        yield f"inputs of scale {scale}", (scale * torch.randn(1, 16).expand(3, 16).contiguous(),)
