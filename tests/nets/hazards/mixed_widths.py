"""Sums of bytes, 32-bit and 64-bit numbers and floats: each in the wider of the two types."""

import torch
from torch import nn

KIND = "values"


class MixedWidths(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("gain", torch.tensor(200, dtype=torch.uint8))

    def forward(self, small, short, long):
        return (
            small + short,
            small * self.gain,
            small * 3,
            short * long,
            small - short,
            small.to(torch.int16) * 300,
            (small + 0.5) * 2,
            torch.where(small > 100, small, short),
            torch.cat([small, small.flip(-1)], -1) + 250,
        )


def make():
    return MixedWidths().eval()


def example():
    small = torch.randint(0, 2, (3, 6), dtype=torch.uint8)
    return small, torch.randint(2, 9, (3, 6), dtype=torch.int32), torch.randint(2, 9, (3, 6))


def calls():
    small = torch.randint(0, 256, (3, 6), dtype=torch.uint8)
    short = torch.randint(-(2**31), 2**31, (3, 6), dtype=torch.int32)
    yield "any bytes", (small, short // 2**25, short.long())
    yield "any numbers", (small, short, torch.randint(0, 2**62, (3, 6)))
    yield "small bytes", (small % 3, short, short.long() * 2**20)
    yield "white", (small * 0 + 255, short * 0 - 1, short.long() * 0 + 2**31)
