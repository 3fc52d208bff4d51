"""A convnet with weights in channels_last; its output is laid out as in eager for each input."""

import torch
from torch import nn

KIND = "form"


def make():
    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, groups=4),
        nn.Upsample(scale_factor=2),
    )
    return net.eval().to(memory_format=torch.channels_last)


def example():
    return (torch.randn(2, 3, 16, 16).to(memory_format=torch.channels_last),)


def calls():
    x = torch.randn(2, 3, 16, 16)
    last = x.to(memory_format=torch.channels_last)
    yield "fresh", (last,)
    yield "channels first", (x,)
    yield "half of a batch", (torch.randn(4, 3, 16, 16)[::2],)
    yield "rows of pixels", lambda net: net(last).permute(0, 2, 3, 1).view(-1, 16)
    yield "rows of pixels, channels first", lambda net: net(x).permute(0, 2, 3, 1).view(-1, 16)
    yield "refused: a flat view", lambda net: net(last).view(2, -1)
