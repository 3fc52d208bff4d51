"""Ids compared with one another and with constants: 2^32 apart, or 1 apart beyond 2^53."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Equal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(10)
        self.out = nn.Linear(10, 4)

    def forward(self, ids, others):
        same = ids == others
        pairs = ids.unsqueeze(-1) == others.unsqueeze(-2)
        special = (ids == 5) | (others == 2**40)
        return (
            self.out(self.tower(same.float())),
            pairs.sum(-1),
            special,
            ids < others,
            torch.eq(ids, 7).any(),
        )


def make():
    return Equal().eval()


def example():
    return torch.randint(0, 50, (3, 10)), torch.randint(0, 50, (3, 10))


def calls():
    ids = torch.randint(0, 20, (3, 10))
    yield "equal", (ids, ids.clone())
    for power in (31, 32, 40, 53, 60):
        yield f"2^{power} apart", (ids, ids + 2**power)
        yield f"1 apart from 2^{power}", (ids + 2**power, ids + 2**power + 1)
    yield "negative", (ids - 2**32, ids)
