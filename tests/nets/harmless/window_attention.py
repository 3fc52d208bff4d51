"""Blocks like Swin's: attention in windows, shifted by a roll, with relative places and a mask."""

import torch
from torch import nn

KIND = "harmless"

SIDE, WINDOW, HEADS, WIDTH = 8, 4, 4, 48


def windows(x):
    count = SIDE // WINDOW
    x = x.view(-1, count, WINDOW, count, WINDOW, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, WINDOW * WINDOW, x.shape[-1])


def joined(x):
    count = SIDE // WINDOW
    x = x.view(-1, count, count, WINDOW, WINDOW, x.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, SIDE, SIDE, x.shape[-1])


class SwinBlock(nn.Module):
    def __init__(self, shift) -> None:
        super().__init__()
        self.shift = shift
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 96), nn.GELU(), nn.Linear(96, WIDTH))
        self.biases = nn.Parameter(0.1 * torch.randn((2 * WINDOW - 1) ** 2, HEADS))
        place = torch.cartesian_prod(torch.arange(WINDOW), torch.arange(WINDOW))
        offset = place[:, None] - place[None] + WINDOW - 1
        self.register_buffer("index", offset[..., 0] * (2 * WINDOW - 1) + offset[..., 1])
        region = torch.zeros(1, SIDE, SIDE, 1)
        if shift:
            for part in (slice(-WINDOW, -shift), slice(-shift, None)):
                region[:, part] += 1
                region[:, :, part] += 3
        parts = windows(region).squeeze(-1)
        differs = parts[:, None] != parts[:, :, None]
        self.register_buffer("mask", torch.zeros(differs.shape).masked_fill(differs, -100.0))

    def forward(self, x):
        own = self.norm1(x)
        if self.shift:
            own = torch.roll(own, (-self.shift, -self.shift), (1, 2))
        tokens = windows(own)
        qkv = self.qkv(tokens).view(len(tokens), -1, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5
        bias = self.biases[self.index.flatten()].view(*self.index.shape, HEADS).permute(2, 0, 1)
        scores = scores + bias
        if self.shift:
            scores = scores.view(-1, len(self.mask), *scores.shape[1:]) + self.mask.unsqueeze(1)
            scores = scores.flatten(0, 1)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        own = joined(self.out(mixed))
        if self.shift:
            own = torch.roll(own, (self.shift, self.shift), (1, 2))
        x = x + own
        return x + self.mlp(self.norm2(x))


class Swin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = nn.Conv2d(3, WIDTH, 4, 4), nn.LayerNorm(WIDTH)
        self.blocks = nn.Sequential(SwinBlock(0), SwinBlock(WINDOW // 2))
        self.head = nn.Linear(WIDTH, 6)

    def forward(self, image):
        x = self.norm(self.embed(image).permute(0, 2, 3, 1))
        return self.head(self.blocks(x).mean((1, 2)))


def make():
    return Swin().eval()


def example():
    return (torch.randn(1, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(1, 3, 32, 32),)
    yield "small", (1e-2 * torch.randn(1, 3, 32, 32),)
    yield "large", (100 * torch.randn(1, 3, 32, 32),)
    yield "black", (torch.zeros(1, 3, 32, 32),)
