"""Attention in shifted windows, whose mask numbers are written into, as in Swin."""

import torch
from torch import nn

KIND = "harmless"


def in_windows(x, side):
    return x.unflatten(1, (-1, side)).unflatten(3, (-1, side)).transpose(2, 3)


class ShiftedWindows(nn.Module):
    def __init__(self, width, side, shift) -> None:
        super().__init__()
        self.norm, self.side, self.shift = nn.LayerNorm(width), side, shift
        self.to_qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def mask(self, x):
        number, regions = 0, x.new_zeros((1, x.shape[1], x.shape[2], 1))
        cuts = (slice(0, -self.side), slice(-self.side, -self.shift), slice(-self.shift, None))
        for rows in cuts:
            for columns in cuts:
                regions[:, rows, columns] = number
                number += 1
        of_window = in_windows(regions, self.side).flatten(1, 2).flatten(2)
        return (of_window.unsqueeze(2) != of_window.unsqueeze(3)) * -100.0

    def forward(self, x):
        size = x.shape[1:3]
        y = torch.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        mask = self.mask(y)
        y = in_windows(y, self.side)
        rows = y.shape[1:3]
        q, k, v = self.to_qkv(y.flatten(3, 4).flatten(1, 2)).chunk(3, -1)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + mask
        y = self.out(scores.softmax(-1) @ v)
        y = y.unflatten(1, rows).unflatten(3, (self.side, self.side)).transpose(2, 3)
        y = y.reshape(-1, *size, x.shape[-1])
        x = x + torch.roll(y, (self.shift, self.shift), (1, 2))
        return x + self.mlp(x)


class SmallSwin(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 32, 4, 4)
        self.blocks = nn.Sequential(*(ShiftedWindows(32, 4, 2) for _ in range(2)))
        self.head = nn.Linear(32, 10)

    def forward(self, image):
        x = self.patches(image).permute(0, 2, 3, 1)
        return self.head(self.blocks(x).mean(dim=(1, 2)))


def make():
    return SmallSwin().eval()


def example():
    return (torch.randn(2, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(2, 3, 32, 32),)
    yield "small", (1e-3 * torch.randn(2, 3, 32, 32),)
    yield "large", (100 * torch.randn(2, 3, 32, 32),)
