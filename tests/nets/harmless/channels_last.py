"""A convnet in channels-last memory, whose images come in it too."""

import torch
from torch import nn

KIND = "harmless"


def make():
    net = nn.Sequential(
        *(nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU()),
        *(nn.Conv2d(24, 24, 3, 1, 1, groups=24, bias=False), nn.BatchNorm2d(24), nn.ReLU()),
        *(nn.Conv2d(24, 48, 1, bias=False), nn.BatchNorm2d(48), nn.ReLU()),
        *(nn.Conv2d(48, 48, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(48, 10),
    ).eval()
    return net.to(memory_format=torch.channels_last)


def images(scale=1.0):
    return ((scale * torch.randn(2, 3, 48, 48)).contiguous(memory_format=torch.channels_last),)


def example():
    return images()


def calls():
    yield "fresh", images()
    yield "small", images(1e-3)
    yield "large", images(100.0)
    yield "black", images(0.0)
    yield "in usual memory", (torch.randn(2, 3, 48, 48),)
