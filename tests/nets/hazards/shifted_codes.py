"""Codes of cells made by interleaving the bits of coordinates, in 32 and in 64 bits."""

import torch
from torch import nn

KIND = "values"


class Morton(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(256, 8)

    def spread(self, n):
        n = (n | (n << 16)) & 0x0000FFFF0000FFFF
        n = (n | (n << 8)) & 0x00FF00FF00FF00FF
        n = (n | (n << 4)) & 0x0F0F0F0F0F0F0F0F
        n = (n | (n << 2)) & 0x3333333333333333
        return (n | (n << 1)) & 0x5555555555555555

    def forward(self, x, y):
        code = self.spread(x) | (self.spread(y) << 1)
        short = (x.int() << 5) ^ y.int()
        return self.table(code & 255), code, short, code >> 7, short >> 2


def make():
    return Morton().eval()


def example():
    return torch.randint(0, 16, (3, 9)), torch.randint(0, 16, (3, 9))


def calls():
    for bound in (2**12, 2**17, 2**31):
        yield f"below {bound}", (torch.randint(0, bound, (3, 9)), torch.randint(0, bound, (3, 9)))
    yield "negative", (torch.randint(-16, 0, (3, 9)), torch.randint(-16, 0, (3, 9)))
