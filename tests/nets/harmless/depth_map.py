"""A depth net: skips, bilinear upsampling with aligned corners, and a softplus of disparity."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class DepthNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Conv2d(3, 16, 3, 2, 1), nn.Conv2d(16, 32, 3, 2, 1)
        self.three = nn.Conv2d(32, 32, 3, 1, 2, dilation=2)
        self.merge, self.out = nn.Conv2d(48, 16, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)
        self.up = nn.UpsamplingBilinear2d(scale_factor=2)

    def forward(self, image):
        one = F.elu(self.one(image))
        deep = F.elu(self.three(F.elu(self.two(one))))
        x = F.elu(self.merge(torch.cat([one, self.up(deep)], 1)))
        disparity = F.softplus(self.out(self.up(x))) + 0.01
        return 1 / disparity


def make():
    return DepthNet().eval()


def example():
    return (torch.rand(1, 3, 48, 64),)


def calls():
    yield "fresh", (torch.rand(1, 3, 48, 64),)
    yield "dark", (0.01 * torch.rand(1, 3, 48, 64),)
    yield "black", (torch.zeros(1, 3, 48, 64),)
    yield "white", (torch.ones(1, 3, 48, 64),)
    yield "normalised otherwise", (2 * torch.randn(1, 3, 48, 64),)
