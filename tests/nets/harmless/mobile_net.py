"""A mobile convnet: inverted residuals of depthwise convolutions with hard swish."""

import torch
from torch import nn

KIND = "harmless"


def conv(width_in, width_out, kernel=1, stride=1, groups=1, acts=True):
    layers = [
        nn.Conv2d(width_in, width_out, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(width_out, eps=1e-3),
    ]
    return nn.Sequential(*layers, *[nn.Hardswish(inplace=True)] * acts)


class Inverted(nn.Module):
    def __init__(self, width_in, width_out, stride, kernel) -> None:
        super().__init__()
        wide = 4 * width_in
        self.adds = stride == 1 and width_in == width_out
        self.layers = nn.Sequential(
            conv(width_in, wide),
            conv(wide, wide, kernel, stride, groups=wide),
            conv(wide, width_out, acts=False),
        )

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


def make():
    net = nn.Sequential(
        conv(3, 16, 3, 2),
        *(Inverted(16, 24, 2, 3), Inverted(24, 24, 1, 3), Inverted(24, 40, 2, 5)),
        *(Inverted(40, 40, 1, 5), conv(40, 120)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(120, 20),
    ).eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.1, 0.6)
    return net


def example():
    return (torch.randn(1, 3, 64, 64),)


def calls():
    yield "fresh", (torch.randn(1, 3, 64, 64),)
    yield "small", (1e-3 * torch.randn(1, 3, 64, 64),)
    yield "large", (30 * torch.randn(1, 3, 64, 64),)
    yield "black", (torch.zeros(1, 3, 64, 64),)
