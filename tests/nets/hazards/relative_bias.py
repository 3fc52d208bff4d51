"""Biases by relative positions, in logarithmic buckets: far positions share the last one."""

import torch
from torch import nn

KIND = "indices"


class Relative(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Embedding(16, 4)

    def forward(self, query, key):
        off = key.unsqueeze(0) - query.unsqueeze(1)
        side = (off > 0).long() * 8
        far = off.abs()
        log = 4 + (torch.log2(far.float().clamp(min=1) / 4) * 1.0).floor().long()
        bucket = side + torch.where(far < 4, far, log.clamp(max=7))
        return self.bias(bucket).permute(2, 0, 1).contiguous(), bucket, off.clamp(-8, 8) + 8


def make():
    return Relative().eval()


def example():
    return torch.arange(6), torch.arange(6)


def calls():
    steps = torch.arange(6)
    yield "later", (steps, steps + 40)
    yield "powers of 2", (steps * 0, 2**steps)
    yield "earlier", (steps + 5000, steps)
    yield "2^33 apart", (steps, steps + 2**33)
    yield "spread", (steps * 7, steps * 2**20)
