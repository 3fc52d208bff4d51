"""Histograms of ids and of values: values outside are left out, and the last bin is closed."""

import torch
from torch import nn

KIND = "indices"


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(8, 3)

    def forward(self, x, ids):
        counts = torch.histc(x, bins=8, min=0.0, max=4.0)
        ids = ids.clamp(max=63)
        ids_count = torch.bincount(ids, minlength=16)
        return self.out(counts), counts, ids_count, torch.bincount(ids, weights=x, minlength=16)


def make():
    return Counted().eval()


def example():
    return torch.randint(0, 8, (40,)) / 2 + 0.25, torch.randint(0, 16, (40,))


def calls():
    x, ids = torch.randint(-4, 14, (40,)) / 2, torch.randint(0, 16, (40,))
    yield "on the edges", (x, ids)
    yield "all outside", (x + 100, ids * 0)
    yield "longer", (torch.rand(64) * 4, torch.randint(0, 16, (64,)))
    yield "more ids", (x, ids + 20)
    yield "refused: negative ids", (x, ids - 16)
