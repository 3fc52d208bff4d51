"""Queries, keys and values as slices of one product: with gaps, and in one piece of memory."""

import torch
from torch import nn

KIND = "form"


class Slices(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(32, 96)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return q, k, v[:, 1:].unflatten(-1, (4, 8)).transpose(1, 2)


def make():
    return Slices().eval()


def example():
    return (torch.randn(2, 6, 32),)


def joined(net):
    q, k, _ = net(torch.ones(2, 6, 32))
    return torch.as_strided(q, (2, 6, 96), (576, 96, 1)), k.storage_offset()


def written(net):
    q, k, v = net(torch.ones(2, 6, 32))
    q.as_strided((12, 96), (96, 1)).zero_()
    return q, k, v


def calls():
    x = torch.randn(2, 6, 32)
    yield "fresh", (x,)
    yield "longer", (torch.randn(2, 9, 32),)
    yield "joined again without a copy", joined
    yield "writing into all of them", written
    yield "refused: a flat view of one", lambda net: net(x)[0].view(-1)
