"""A densely connected convnet: each layer sees all former ones; transitions by mean pooling."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class DenseLayer(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.BatchNorm2d(width), nn.Conv2d(width, 32, 1, bias=False)
        self.norm2, self.conv2 = nn.BatchNorm2d(32), nn.Conv2d(32, 12, 3, padding=1, bias=False)

    def forward(self, x):
        out = self.conv1(F.relu(self.norm1(x)))
        return torch.cat([x, self.conv2(F.relu(self.norm2(out)))], 1)


def transition(width):
    return nn.Sequential(
        nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, 24, 1, bias=False), nn.AvgPool2d(2)
    )


def make():
    net = nn.Sequential(
        nn.Conv2d(3, 24, 3, 2, 1, bias=False),
        *(DenseLayer(24), DenseLayer(36), DenseLayer(48), transition(60)),
        *(DenseLayer(24), DenseLayer(36), DenseLayer(48)),
        *(nn.BatchNorm2d(60), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(60, 10),
    ).eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.1, 1)
    return net


def example():
    return (torch.randn(1, 3, 48, 48),)


def calls():
    yield "fresh", (torch.randn(1, 3, 48, 48),)
    yield "small", (1e-3 * torch.randn(1, 3, 48, 48),)
    yield "large", (100 * torch.randn(1, 3, 48, 48),)
    yield "black", (torch.zeros(1, 3, 48, 48),)
