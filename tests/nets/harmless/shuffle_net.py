"""Two stages of a shuffled convnet: halves of channels, depthwise convolutions, and a shuffle."""

import torch
from torch import nn

KIND = "harmless"


class Unit(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        half = width // 2
        self.branch = nn.Sequential(
            *(nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU6()),
            *(nn.Conv2d(half, half, 3, 1, 1, groups=half, bias=False), nn.BatchNorm2d(half)),
            *(nn.Conv2d(half, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU6()),
        )

    def forward(self, x):
        kept, changed = x.chunk(2, dim=1)
        x = torch.cat([kept, self.branch(changed)], 1)
        batch, width, height, columns = x.size()
        x = x.view(batch, 2, width // 2, height, columns).transpose(1, 2).contiguous()
        return x.view(batch, width, height, columns)


def make():
    return nn.Sequential(
        *(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU6(), Unit(32), Unit(32)),
        *(nn.Conv2d(32, 64, 2, 2), nn.ReLU6(), Unit(64), Unit(64)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    ).eval()


def example():
    return (torch.randn(1, 3, 48, 48),)


def calls():
    yield "fresh", (torch.randn(1, 3, 48, 48),)
    yield "small", (0.01 * torch.randn(1, 3, 48, 48),)
    yield "large", (100 * torch.randn(1, 3, 48, 48),)
    yield "black", (torch.zeros(1, 3, 48, 48),)
