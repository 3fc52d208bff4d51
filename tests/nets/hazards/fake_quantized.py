"""Fake quantisation: halves go to even, what is too large is cut off, and zero points hold."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(4)
        self.register_buffer("scale", torch.tensor([0.25, 0.5, 1.0, 2.0]))
        self.register_buffer("zero", torch.tensor([0, 3, -5, 10], dtype=torch.int32))
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        whole = torch.fake_quantize_per_tensor_affine(x, 0.25, 10, 0, 255)
        signed = torch.fake_quantize_per_tensor_affine(x, 0.5, 0, -128, 127)
        each = torch.fake_quantize_per_channel_affine(x, self.scale, self.zero, 1, -128, 127)
        own = (x / 0.125).round().clamp(-8, 7) * 0.125
        return self.tower(whole), whole, signed, each, own, self.out(each)


def make():
    return Quantized().eval()


def example():
    return (torch.rand(6, 4) + 0.1,)


def calls():
    eighths = torch.arange(-12, 12).reshape(6, 4) / 8
    yield "eighths", (eighths,)
    yield "halves", (eighths * 8 + 0.5,)
    yield "large", (1e4 * torch.randn(6, 4),)
    yield "far", (torch.full((6, 4), 1e12),)
    yield "infinities", (torch.tensor([float("inf"), -float("inf")]).repeat(6, 2),)
