"""Three blocks like ConvNeXt's: a depthwise kernel of 7, layer norm of channels, a layer scale."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.conv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        out = self.norm(self.conv(x).permute(0, 2, 3, 1))
        out = self.gamma * self.down(F.gelu(self.up(out)))
        return x + out.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 40, 4, 4)
        self.blocks = nn.Sequential(*(Block(40) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(40), nn.Linear(40, 10)

    def forward(self, x):
        return self.head(self.norm(self.blocks(self.stem(x)).mean([-2, -1])))


def make():
    return ConvNext().eval()


def example():
    return (torch.randn(1, 3, 64, 64),)


def calls():
    yield "fresh", (torch.randn(1, 3, 64, 64),)
    yield "small", (0.1 * torch.randn(1, 3, 64, 64),)
    yield "large", (100 * torch.randn(1, 3, 64, 64),)
    yield "black", (torch.zeros(1, 3, 64, 64),)
