"""A wide and deep click model: a linear part over crossed columns beside an MLP over tables."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class WideDeep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("offsets", torch.tensor([0, 40, 80, 120]))
        self.wide = nn.Embedding(40 * 40, 1)
        self.deep = nn.Embedding(160, 12)
        self.layers = nn.ModuleList([nn.Linear(4 * 12 + 6, 96), nn.Linear(96, 48)])
        self.out = nn.Linear(48, 1)

    def forward(self, ids, numbers):
        crossed = [ids[:, a] * 40 + ids[:, b] for a in range(4) for b in range(a + 1, 4)]
        wide = self.wide(torch.stack(crossed, 1)).sum(1)
        x = torch.cat([self.deep(ids + self.offsets).flatten(1), numbers], 1)
        for layer in self.layers:
            x = F.relu(layer(x))
        return torch.sigmoid(wide + self.out(x)).squeeze(1)


def make():
    return WideDeep().eval()


def example():
    return torch.randint(40, (256, 4)), torch.randn(256, 6)


def calls():
    yield "fresh", (torch.randint(40, (256, 4)), torch.randn(256, 6))
    yield "first rows", (torch.zeros(256, 4).long(), torch.randn(256, 6))
    yield "last rows", (torch.full((256, 4), 39), torch.randn(256, 6))
    yield "small numbers", (torch.randint(40, (256, 4)), 1e-3 * torch.randn(256, 6))
    yield "large numbers", (torch.randint(40, (256, 4)), 100 * torch.randn(256, 6))
