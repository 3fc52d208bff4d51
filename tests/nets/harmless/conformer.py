"""A block like Conformer's: half feed-forwards, attention, a gated depthwise convolution."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


def feed_forward(width):
    return nn.Sequential(
        *(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1)),
        *(nn.Linear(4 * width, width), nn.Dropout(0.1)),
    )


class ConvPart(nn.Module):
    def __init__(self, width, kernel=15) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Conv1d(width, 2 * width, 1)
        self.depth = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.bn, self.out = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x):
        x = F.glu(self.wide(self.norm(x).transpose(1, 2)), dim=1)
        return self.out(F.silu(self.bn(self.depth(x)))).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self, width=64) -> None:
        super().__init__()
        self.ff1, self.ff2 = feed_forward(width), feed_forward(width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.conv = ConvPart(width)

    def forward(self, x):
        x = x + 0.5 * self.ff1(x)
        own = self.norm1(x)
        x = x + self.attention(own, own, own, need_weights=False)[0]
        x = x + self.conv(x)
        return self.norm2(x + 0.5 * self.ff2(x))


def make():
    return nn.Sequential(Conformer(), Conformer()).eval()


def example():
    return (torch.randn(1, 50, 64),)


def calls():
    yield "fresh", (torch.randn(1, 50, 64),)
    yield "small", (0.01 * torch.randn(1, 50, 64),)
    yield "large", (100 * torch.randn(1, 50, 64),)
    yield "silence", (torch.zeros(1, 50, 64),)
