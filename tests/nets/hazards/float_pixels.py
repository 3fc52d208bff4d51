"""Images scaled to bytes by clamp, rounding and a cast: black, white and beyond."""

import torch
from torch import nn

KIND = "values"


class ToBytes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 1)
        with torch.no_grad():
            self.conv.weight.copy_(torch.eye(3).reshape(3, 3, 1, 1))
            self.conv.bias.zero_()

    def forward(self, x):
        pixels = (self.conv(x).clamp(0, 1) * 255).round().to(torch.uint8)
        cut = (x.clamp(0, 1) * 255).byte()
        return pixels, cut, pixels.float().mean((2, 3)), (x * 64).clamp(-128, 127).to(torch.int8)


def make():
    return ToBytes().eval()


def example():
    return ((torch.randint(20, 200, (1, 3, 8, 8)) + 0.25) / 255,)


def calls():
    yield "white", (torch.ones(1, 3, 8, 8),)
    yield "beyond white", (torch.full((1, 3, 8, 8), 1.7),)
    yield "below black", (torch.full((1, 3, 8, 8), -0.7),)
    yield "multiples of 1/16", (torch.arange(-96, 96).reshape(1, 3, 8, 8) / 16,)
    yield (
        "infinities",
        (torch.tensor([float("inf"), -float("inf")]).repeat(96).reshape(1, 3, 8, 8),),
    )
