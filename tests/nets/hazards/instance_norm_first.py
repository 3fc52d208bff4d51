"""A net that begins with an instance norm, which OpenVINO reshapes and renames the input for."""

import torch
from torch import nn

KIND = "process"


def make():
    norm = nn.InstanceNorm2d(3, affine=True, track_running_stats=True)
    nn.init.uniform_(norm.running_mean)
    nn.init.uniform_(norm.running_var, 0.5, 2)
    return nn.Sequential(
        nn.InstanceNorm2d(3, affine=True), nn.Conv2d(3, 3, 3), nn.ReLU(), norm
    ).eval()


def example():
    return (torch.randn(1, 3, 12, 12),)


def calls():
    yield "fresh", (torch.randn(1, 3, 12, 12),)
    yield "constant", (torch.full((1, 3, 12, 12), 3.0),)
    yield "a batch", (torch.randn(2, 3, 12, 12),)
    yield "without a batch", (torch.randn(3, 12, 12),)
    yield "refused: one channel", (torch.randn(1, 1, 12, 12),)
