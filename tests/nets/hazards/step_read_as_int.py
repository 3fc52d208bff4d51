"""A denoiser that adds its guidance from step 100 on: the step of each call decides."""

import torch
from torch import nn

KIND = "control flow"


class Denoiser(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 64), nn.SiLU())
        self.guide = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 64), nn.Tanh())
        self.out = nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 32))

    def forward(self, x, step):
        is_guided = int(step) >= 100
        hidden = self.stem(x)
        if is_guided:
            hidden = hidden + self.guide(hidden)
        return self.out(hidden)


def make():
    return Denoiser().eval()


def example():
    return torch.randn(2, 32), torch.tensor(5)


def calls():
    for step in (0, 5, 99, 100, 101, 999):
        yield f"step {step}", (torch.randn(2, 32), torch.tensor(step))
