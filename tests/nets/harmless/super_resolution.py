"""A net that doubles and doubles again the size of an image by pixel shuffles."""

import torch
from torch import nn

KIND = "harmless"


class Upscaler(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 24, 5, padding=2)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(24, 24, 3, padding=1), nn.PReLU(24)) for _ in range(3)
        )
        self.up = nn.Sequential(
            *(nn.Conv2d(24, 48, 3, padding=1), nn.PixelShuffle(2), nn.PReLU()),
            *(nn.Conv2d(12, 12, 3, padding=1), nn.PixelShuffle(2)),
        )
        self.small = nn.Upsample(scale_factor=4, mode="nearest")

    def forward(self, image):
        x = self.first(image)
        for block in self.blocks:
            x = x + 0.5 * block(x)
        return (self.up(x) + self.small(image)).clamp(0, 1)


def make():
    return Upscaler().eval()


def example():
    return (torch.rand(1, 3, 20, 24),)


def calls():
    yield "fresh", (torch.rand(1, 3, 20, 24),)
    yield "dark", (0.01 * torch.rand(1, 3, 20, 24),)
    yield "black", (torch.zeros(1, 3, 20, 24),)
    yield "white", (torch.ones(1, 3, 20, 24),)
    yield "beyond white", (100 * torch.randn(1, 3, 20, 24),)
