"""Bits of bytes and of 64-bit words, unpacked, combined and packed again."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class BitPlanes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.register_buffer("shifts", torch.arange(8, dtype=torch.uint8))
        self.register_buffer("wide", torch.tensor(32))
        self.out = nn.Linear(8, 4)

    def forward(self, packed, words):
        bits = (packed.unsqueeze(-1) >> self.shifts) & 1
        again = (bits << self.shifts).sum(-1).to(torch.uint8)
        low, high = words & 0xFFFFFFFF, words >> self.wide
        return (
            self.out(self.tower(bits.float())),
            again ^ packed,
            low,
            high,
            ~packed,
            ~words,
            words | self.wide,
            words << 3,
        )


def make():
    return BitPlanes().eval()


def example():
    return torch.randint(1, 100, (4, 6), dtype=torch.uint8), torch.randint(0, 1000, (4, 6))


def calls():
    packed = torch.randint(0, 256, (4, 6), dtype=torch.uint8)
    yield "any bytes", (packed, torch.randint(0, 2**31, (4, 6)))
    yield "long words", (packed, torch.randint(0, 2**62, (4, 6)))
    yield "negative words", (packed, -torch.randint(1, 2**62, (4, 6)))
    yield "ones", (packed * 0 + 255, torch.full((4, 6), -1))
