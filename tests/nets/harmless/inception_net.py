"""An inception-like convnet: branches of kernels of 1, 3 and 5 and of pooling, concatenated."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Conv(nn.Module):
    def __init__(self, *args, **kwargs) -> None:
        super().__init__()
        self.conv = nn.Conv2d(*args, bias=False, **kwargs)
        self.bn = nn.BatchNorm2d(self.conv.out_channels, eps=0.001)

    def forward(self, x):
        return F.relu(self.bn(self.conv(x)), inplace=True)


class Inception(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.one = Conv(width, 16, 1)
        self.three = nn.Sequential(Conv(width, 12, 1), Conv(12, 24, (1, 3), padding=(0, 1)))
        self.last = Conv(24, 24, (3, 1), padding=(1, 0))
        self.five = nn.Sequential(Conv(width, 8, 1), Conv(8, 16, 5, padding=2))
        self.pool = Conv(width, 8, 1)

    def forward(self, x):
        pooled = F.avg_pool2d(x, kernel_size=3, stride=1, padding=1, count_include_pad=False)
        branches = [self.one(x), self.last(self.three(x)), self.five(x), self.pool(pooled)]
        return torch.cat(branches, 1)


class InceptionNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first = Conv(3, 24, 3, stride=2, padding=1), Inception(24)
        self.second, self.head = Inception(64), nn.Linear(64, 12)

    def forward(self, x):
        x = self.first(self.stem(x))
        x = self.second(F.max_pool2d(x, 3, stride=2, ceil_mode=True))
        return self.head(x.mean((2, 3)))


def make():
    return InceptionNet().eval()


def example():
    return (torch.randn(1, 3, 48, 48),)


def calls():
    yield "fresh", (torch.randn(1, 3, 48, 48),)
    yield "small", (1e-3 * torch.randn(1, 3, 48, 48),)
    yield "large", (100 * torch.randn(1, 3, 48, 48),)
    yield "black", (torch.zeros(1, 3, 48, 48),)
