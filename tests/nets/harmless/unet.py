"""A U-Net of three levels for the segmentation of one image, with transposed convolutions."""

import torch
from torch import nn

KIND = "harmless"


def double(width_in, width_out):
    return nn.Sequential(
        *(nn.Conv2d(width_in, width_out, 3, padding=1), nn.BatchNorm2d(width_out), nn.ReLU(True)),
        *(nn.Conv2d(width_out, width_out, 3, padding=1), nn.BatchNorm2d(width_out), nn.ReLU(True)),
    )


class UNet(nn.Module):
    def __init__(self, widths=(8, 16, 32)) -> None:
        super().__init__()
        self.down = nn.ModuleList(map(double, (1, *widths), widths))
        self.pool = nn.MaxPool2d(2)
        self.up = nn.ModuleList(nn.ConvTranspose2d(w, v, 2, 2) for w, v in ((32, 16), (16, 8)))
        self.merge = nn.ModuleList([double(32, 16), double(16, 8)])
        self.out = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        skips = []
        for number, layer in enumerate(self.down):
            x = layer(self.pool(x) if number else x)
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1], strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return self.out(x)


def make():
    return UNet().eval()


def example():
    return (torch.randn(1, 1, 48, 48),)


def calls():
    yield "fresh", (torch.randn(1, 1, 48, 48),)
    yield "small", (1e-3 * torch.randn(1, 1, 48, 48),)
    yield "large", (100 * torch.randn(1, 1, 48, 48),)
    yield "black", (torch.zeros(1, 1, 48, 48),)
