"""Sound in 16 bits, mixed and amplified: it wraps at 32768 before it becomes a float."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Pcm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.conv = nn.Conv1d(1, 8, 9, padding=4)

    def forward(self, left, right):
        mixed = left + right
        loud = left * 3
        h = self.conv(mixed.float().unsqueeze(1) / 32768).abs().mean(-1)
        power = (left.to(torch.int32) * right).sum(-1)
        return self.tower(h), mixed, loud, left - right, power, left.float().amax(-1)


def make():
    return Pcm().eval()


def _sound(low, high):
    return torch.randint(low, high, (2, 64), dtype=torch.int16)


def example():
    return _sound(0, 100), _sound(0, 100)


def calls():
    yield "negative", (_sound(-1000, 0), _sound(-1000, 0))
    yield "loud", (_sound(20000, 32768), _sound(20000, 32768))
    yield "any", (_sound(-32768, 32768), _sound(-32768, 32768))
    yield "the lowest", (torch.full((2, 64), -32768, dtype=torch.int16), _sound(-5, 5))
