"""Three blocks of convolutions with squeeze and excitation, sixteen images a call."""

import torch
from torch import nn

KIND = "harmless"


class SqueezeExcite(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1, groups=width // 4)
        self.down, self.up = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x):
        out = nn.functional.silu(self.conv(x))
        scale = nn.functional.relu(self.down(out.mean((2, 3), keepdim=True)))
        return x + out * torch.sigmoid(self.up(scale))


def make():
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, 2, 1),
        *(SqueezeExcite(32) for _ in range(3)),
        nn.Conv2d(32, 64, 1),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(1),
        nn.Linear(64, 5),
    ).eval()


def example():
    return (torch.rand(16, 3, 24, 24),)


def calls():
    yield "fresh", (torch.rand(16, 3, 24, 24),)
    yield "small", (1e-3 * torch.rand(16, 3, 24, 24),)
    yield "large", (100 * torch.randn(16, 3, 24, 24),)
    yield "black", (torch.zeros(16, 3, 24, 24),)
