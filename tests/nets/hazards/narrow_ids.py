"""Ids in 8, 16 and 32 bits looked up in a table: those out of range must raise in each."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Narrow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.table = nn.Embedding(40, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, byte, signed, short, whole):
        h = self.table(byte.long()) + self.table(signed.long()) + self.table(short.long())
        return self.out(self.tower(h + self.table(whole)))


def make():
    return Narrow().eval()


DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32)


def _ids(*values):
    return tuple(
        torch.full((3, 4), value, dtype=dtype) for value, dtype in zip(values, DTYPES, strict=True)
    )


def example():
    return tuple(torch.randint(1, 39, (3, 4)).to(dtype) for dtype in DTYPES)


def calls():
    yield "the ends", _ids(39, 0, 39, 0)
    yield "refused: byte 40", _ids(40, 1, 1, 1)
    yield "refused: byte 255", _ids(255, 1, 1, 1)
    yield "refused: signed -1", _ids(1, -1, 1, 1)
    yield "refused: short 300", _ids(1, 1, 300, 1)
    yield "refused: whole -1", _ids(1, 1, 1, -1)
    yield "refused: whole 2^31 - 1", _ids(1, 1, 1, 2**31 - 1)
