"""Sines of large angles, as of times and late positions, with the angle's every digit."""

import torch
from torch import nn

KIND = "values"


class Fourier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("powers", 2.0 ** torch.arange(0, 12))
        self.out = nn.Linear(24, 4)

    def forward(self, t):
        angles = t.unsqueeze(-1) * self.powers
        waves = torch.cat([angles.sin(), angles.cos()], -1)
        return waves, self.out(waves), torch.tan(t / 8).clamp(-10, 10)


def make():
    return Fourier().eval()


def example():
    return (torch.rand(20),)


def calls():
    yield "negative", (-torch.rand(20),)
    for scale in (100.0, 1e4, 1e6, 1e9, 1e15):
        yield f"of {scale:g}", (scale * torch.rand(20),)
    yield "infinities", (torch.tensor([float("inf"), -float("inf")]).repeat(10),)
