"""The decoder of a variational autoencoder: residual blocks with group norm, nearest upsampling."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width_in, width_out) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, width_in, eps=1e-6)
        self.conv1 = nn.Conv2d(width_in, width_out, 3, padding=1)
        self.norm2 = nn.GroupNorm(8, width_out, eps=1e-6)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1)
        self.skip = nn.Conv2d(width_in, width_out, 1) if width_in != width_out else nn.Identity()

    def forward(self, x):
        out = self.conv1(F.silu(self.norm1(x)))
        return self.skip(x) + self.conv2(F.silu(self.norm2(out)))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 32, 3, padding=1)
        self.blocks = nn.ModuleList([Block(32, 32), Block(32, 16)])
        self.norm, self.last = nn.GroupNorm(4, 16), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, latent):
        x = self.first(latent / 0.18215)
        for block in self.blocks:
            x = F.interpolate(block(x), scale_factor=2.0, mode="nearest")
        return (self.last(F.silu(self.norm(x))) / 2 + 0.5).clamp(0, 1)


def make():
    return Decoder().eval()


def example():
    return (torch.randn(1, 4, 10, 10),)


def calls():
    yield "fresh", (torch.randn(1, 4, 10, 10),)
    yield "small", (0.1 * torch.randn(1, 4, 10, 10),)
    yield "large", (10 * torch.randn(1, 4, 10, 10),)
    yield "the mean latent", (torch.zeros(1, 4, 10, 10),)
