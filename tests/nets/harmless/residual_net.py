"""A small residual convnet with strided shortcuts, one image a call."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width_in, width_out, stride) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width_in, width_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width_out)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width_out)
        self.shortcut = nn.Identity()
        if stride != 1 or width_in != width_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(width_in, width_out, 1, stride, bias=False), nn.BatchNorm2d(width_out)
            )

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += self.shortcut(x)
        return F.relu(out)


class ResidualNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(True)
        )
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(
            Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1), Block(32, 64, 2)
        )
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        x = self.blocks(self.pool(self.stem(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


def make():
    net = ResidualNet().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.2, 1)
    return net


def example():
    return (torch.randn(1, 3, 64, 64),)


def calls():
    yield "fresh", (torch.randn(1, 3, 64, 64),)
    yield "small", (1e-3 * torch.randn(1, 3, 64, 64),)
    yield "large", (100 * torch.randn(1, 3, 64, 64),)
    yield "black", (torch.zeros(1, 3, 64, 64),)
