"""A plain convnet for small images, one image a call."""

import torch
from torch import nn

KIND = "harmless"


def stage(width_in, width_out):
    return nn.Sequential(
        nn.Conv2d(width_in, width_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(width_out),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
    )


def make():
    net = nn.Sequential(
        *(stage(3, 16), stage(16, 32), stage(32, 64)),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 64),
        nn.ReLU(inplace=True),
        nn.Dropout(),
        nn.Linear(64, 10),
    ).eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.2, 1)
    return net


def example():
    return (torch.randn(1, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(1, 3, 32, 32),)
    yield "pixels between zero and one", (torch.rand(1, 3, 32, 32),)
    yield "small", (1e-3 * torch.randn(1, 3, 32, 32),)
    yield "large", (100 * torch.randn(1, 3, 32, 32),)
    yield "black", (torch.zeros(1, 3, 32, 32),)
