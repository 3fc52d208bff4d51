"""A net of learned splines: each layer a sum of radial bumps of each input, and a SiLU part."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class SplineLayer(nn.Module):
    def __init__(self, width_in, width_out, num_bumps=8) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width_in)
        self.register_buffer("centres", torch.linspace(-2, 2, num_bumps))
        self.spline = nn.Linear(width_in * num_bumps, width_out, bias=False)
        self.base = nn.Linear(width_in, width_out)

    def forward(self, x):
        distance = (self.norm(x).unsqueeze(-1) - self.centres) * 1.75
        bumps = torch.exp(-(distance**2))
        return self.spline(bumps.flatten(-2)) + self.base(F.silu(x))


def make():
    return nn.Sequential(SplineLayer(20, 64), SplineLayer(64, 64), SplineLayer(64, 4)).eval()


def example():
    return (torch.randn(16, 20),)


def calls():
    yield "fresh", (torch.randn(16, 20),)
    yield "small", (0.01 * torch.randn(16, 20),)
    yield "large", (100 * torch.randn(16, 20),)
    yield "zeros", (torch.zeros(16, 20),)
