"""A small denoising U-Net: the step as sines, residual blocks moved by it, attention, a skip."""

import math

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


def step_waves(step, width=32):
    rate = torch.exp(-math.log(10000) * torch.arange(width // 2) / (width // 2))
    angle = step[:, None].to(torch.float32) * rate[None]
    return torch.cat([torch.cos(angle), torch.sin(angle)], -1)


class Block(nn.Module):
    def __init__(self, width_in, width_out) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, width_in), nn.GroupNorm(4, width_out)
        self.conv1 = nn.Conv2d(width_in, width_out, 3, padding=1)
        self.conv2 = nn.Conv2d(width_out, width_out, 3, padding=1)
        self.step = nn.Linear(48, 2 * width_out)
        self.skip = nn.Conv2d(width_in, width_out, 1) if width_in != width_out else nn.Identity()

    def forward(self, x, step):
        out = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.step(F.silu(step))[:, :, None, None].chunk(2, 1)
        out = self.norm2(out) * (1 + scale) + shift
        return self.skip(x) + self.conv2(F.silu(out))


class Attention(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.norm, self.qkv = nn.GroupNorm(4, width), nn.Conv2d(width, 3 * width, 1)
        self.out = nn.Conv2d(width, width, 1)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).flatten(2).transpose(1, 2).chunk(3, -1)
        mixed = F.scaled_dot_product_attention(q.unsqueeze(1), k.unsqueeze(1), v.unsqueeze(1))
        return x + self.out(mixed.squeeze(1).transpose(1, 2).reshape(x.shape))


class DiffusionUNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 48), nn.SiLU(), nn.Linear(48, 48))
        self.first, self.down = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, 2, 1)
        self.block1, self.block2, self.block3 = Block(16, 16), Block(32, 32), Block(32, 16)
        self.attention, self.up = Attention(32), nn.Conv2d(32, 16, 3, padding=1)
        self.norm, self.last = nn.GroupNorm(4, 16), nn.Conv2d(16, 3, 3, padding=1)

    def forward(self, sample, step):
        embedded = self.time(step_waves(step).to(sample.dtype))
        skip = self.block1(self.first(sample), embedded)
        x = self.attention(self.block2(self.down(skip), embedded))
        x = self.up(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        x = self.block3(torch.cat([x, skip], 1), embedded)
        return self.last(F.silu(self.norm(x)))


def make():
    return DiffusionUNet().eval()


def example():
    return torch.randn(1, 3, 16, 16), torch.tensor([500])


def calls():
    for step in (0, 1, 37, 999):
        yield f"step {step}", (torch.randn(1, 3, 16, 16), torch.tensor([step]))
    yield "small", (0.1 * torch.randn(1, 3, 16, 16), torch.tensor([20]))
    yield "large", (80 * torch.randn(1, 3, 16, 16), torch.tensor([999]))
