"""Batch norms whose recorded variance is 0, tiny or huge, folded or not into the layer before."""

import torch
from torch import nn

KIND = "values"


class Edges(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6)
        with torch.no_grad():
            self.norm.running_var.copy_(torch.tensor([0.0, 1e-10, 1e10, 1e30, 1.0, 4.0]))
            self.norm.running_mean.copy_(torch.tensor([0.0, 0.5, 1e3, 0.0, -1.0, 2.0]))

    def forward(self, x):
        h = self.norm(self.conv(x))
        return [torch.relu(h[:, channel]) for channel in range(6)]


def make():
    return Edges().eval()


def example():
    return (torch.rand(1, 2, 8, 8),)


def calls():
    yield "fresh", (torch.randn(1, 2, 8, 8),)
    yield "zeros", (torch.zeros(1, 2, 8, 8),)
    yield "of 1e6", (1e6 * torch.randn(1, 2, 8, 8),)
    x = torch.randn(1, 2, 8, 8)
    x[0, 1, 4, 4] = float("inf")
    yield "an infinity", (x,)
