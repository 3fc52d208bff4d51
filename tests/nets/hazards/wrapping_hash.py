"""Ids mixed by products and shifts that wrap at 64 bits, as a hash of n-grams does."""

import torch
from torch import nn

KIND = "values"


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(257, 16)
        self.register_buffer("shift", torch.tensor(7))

    def forward(self, ids):
        grams = (ids[:, :-2] * 31 + ids[:, 1:-1]) * 31 + ids[:, 2:]
        mixed = (grams ^ (grams >> self.shift)) * 1021
        places = mixed % 257
        return self.table(places).mean(1), places, grams


def make():
    return Mixed().eval()


def example():
    return (torch.randint(0, 8, (4, 12)),)


def calls():
    for bound in (1000, 2**20, 2**40, 2**62):
        yield f"ids below {bound}", (torch.randint(0, bound, (4, 12)),)
    yield "negative", (torch.randint(-(2**40), 0, (4, 12)),)
