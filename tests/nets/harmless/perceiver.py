"""Sixteen learned latents that attend to a long input and to themselves, twice."""

import torch
from torch import nn

KIND = "harmless"


class Perceiver(nn.Module):
    def __init__(self, width=64) -> None:
        super().__init__()
        self.latents = nn.Parameter(torch.randn(16, width))
        self.project = nn.Linear(24, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.cross = nn.MultiheadAttention(width, 1, batch_first=True)
        self.own = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 128), nn.GELU(), nn.Linear(128, width))
        self.head = nn.Linear(width, 8)

    def forward(self, x):
        x = self.norms[0](self.project(x))
        latents = self.latents.expand(len(x), -1, -1)
        for _ in range(2):
            latents = latents + self.cross(self.norms[1](latents), x, x, need_weights=False)[0]
            own = self.norms[2](latents)
            latents = latents + self.own(own, own, own)[0]
            latents = latents + self.mlp(self.norms[3](latents))
        return self.head(latents.mean(1))


def make():
    return Perceiver().eval()


def example():
    return (torch.randn(2, 100, 24),)


def calls():
    yield "fresh", (torch.randn(2, 100, 24),)
    yield "small", (0.01 * torch.randn(2, 100, 24),)
    yield "large", (100 * torch.randn(2, 100, 24),)
    yield "zeros", (torch.zeros(2, 100, 24),)
