"""A net of videos: convolutions in space and in time apart, over eight frames."""

import torch
from torch import nn

KIND = "harmless"


def separate(width_in, width_out, stride):
    return nn.Sequential(
        nn.Conv3d(width_in, width_out, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
        nn.BatchNorm3d(width_out),
        nn.ReLU(True),
        nn.Conv3d(width_out, width_out, (3, 1, 1), padding=(1, 0, 0), bias=False),
        nn.BatchNorm3d(width_out),
        nn.ReLU(True),
    )


def make():
    net = nn.Sequential(
        *(separate(3, 12, 2), separate(12, 24, 2), nn.MaxPool3d(2)),
        *(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(24, 7)),
    ).eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm3d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.1, 0.6)
    return net


def example():
    return (torch.randn(1, 3, 8, 32, 32),)


def calls():
    yield "fresh", (torch.randn(1, 3, 8, 32, 32),)
    yield "a still", (torch.randn(1, 3, 1, 32, 32).repeat(1, 1, 8, 1, 1),)
    yield "large", (100 * torch.randn(1, 3, 8, 32, 32),)
    yield "black", (torch.zeros(1, 3, 8, 32, 32),)
