"""Differences, sums and products of bytes: they wrap at 256, as the user's own bytes do."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Frames(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, now, before):
        moved = now - before
        bright = now * 2 + 10
        mean = (now + before) // 2
        h = self.conv(moved.float() / 255).relu().mean((2, 3))
        return (
            self.tower(moved.float() / 255),
            h,
            moved,
            bright,
            mean,
            now.long().sum((2, 3)),
            now.float().mean() - before.float().mean(),
        )


def make():
    return Frames().eval()


def _bytes(low, high):
    return torch.randint(low, high, (1, 3, 16, 16), dtype=torch.uint8)


def example():
    return _bytes(60, 100), _bytes(10, 50)


def calls():
    yield "darker", (_bytes(0, 50), _bytes(60, 100))
    yield "bright", (_bytes(120, 256), _bytes(120, 256))
    yield "any", (_bytes(0, 256), _bytes(0, 256))
    yield "white", (_bytes(255, 256), _bytes(255, 256))
