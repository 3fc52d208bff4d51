"""A style net: instance norm of the image first, reflected borders, residual blocks, upsampling."""

import torch
from torch import nn

KIND = "harmless"


def conv(width_in, width_out, kernel, stride=1):
    return nn.Sequential(
        nn.ReflectionPad2d(kernel // 2), nn.Conv2d(width_in, width_out, kernel, stride)
    )


class Residual(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(conv(width, width, 3), nn.InstanceNorm2d(width, affine=True), nn.ReLU()),
            *(conv(width, width, 3), nn.InstanceNorm2d(width, affine=True)),
        )

    def forward(self, x):
        return x + self.layers(x)


def make():
    return nn.Sequential(
        nn.InstanceNorm2d(3),
        *(conv(3, 12, 9), nn.InstanceNorm2d(12, affine=True), nn.ReLU()),
        *(conv(12, 24, 3, 2), nn.InstanceNorm2d(24, affine=True), nn.ReLU()),
        *(Residual(24), Residual(24)),
        *(nn.Upsample(scale_factor=2), conv(24, 12, 3), nn.InstanceNorm2d(12, affine=True)),
        *(nn.ReLU(), conv(12, 3, 9), nn.Sigmoid()),
    ).eval()


def example():
    return (torch.rand(1, 3, 40, 40),)


def calls():
    yield "fresh", (torch.rand(1, 3, 40, 40),)
    yield "pixels up to 255", (255 * torch.rand(1, 3, 40, 40),)
    yield "pixels around zero", (torch.randn(1, 3, 40, 40),)
    yield "dim", (0.1 * torch.rand(1, 3, 40, 40),)
