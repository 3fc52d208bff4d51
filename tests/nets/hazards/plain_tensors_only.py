"""A net that looks at its input's type before it rescales pixels: a trace sees another type."""

import torch
from torch import nn

KIND = "control flow"


class Pixels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()
        )
        self.out = nn.Linear(8, 4)

    def forward(self, image):
        if type(image) is torch.Tensor and float(image.max()) > 2.0:
            image = image / 255
        return self.out(self.body(image).mean((2, 3)))


def make():
    return Pixels().eval()


def example():
    return (torch.rand(1, 3, 12, 12),)


def calls():
    yield "from 0 to 1", (torch.rand(1, 3, 12, 12),)
    yield "from 0 to 255", (255 * torch.rand(1, 3, 12, 12),)
    yield "black", (torch.zeros(1, 3, 12, 12),)
    yield "a parameter", lambda net: net(nn.Parameter(torch.full((1, 3, 12, 12), 99.0)))
