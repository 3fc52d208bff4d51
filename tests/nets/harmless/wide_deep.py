"""A wide and deep click model: a linear part over crossed columns beside a deep and a cross net."""

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
        self.layers = nn.ModuleList([nn.Linear(54, 64), nn.Linear(64, 64), nn.Linear(64, 32)])
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for width in (64, 64, 32))
        self.cross = nn.ModuleList(nn.Linear(54, 54) for _ in range(3))
        self.out = nn.Linear(32 + 54, 1)

    def forward(self, ids, numbers):
        crossed = [ids[:, a] * 40 + ids[:, b] for a in range(4) for b in range(a + 1, 4)]
        wide = self.wide(torch.stack(crossed, 1)).sum(1)
        x = inputs = product = torch.cat([self.deep(ids + self.offsets).flatten(1), numbers], 1)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = F.relu(norm(layer(x)))
        for cross in self.cross:
            product = inputs * cross(product) + product
        return torch.sigmoid(wide + self.out(torch.cat([x, product], 1))).squeeze(1)


def make():
    return WideDeep().eval()


def example():
    return torch.randint(40, (16, 4)), torch.randn(16, 6)


def calls():
    yield "fresh", (torch.randint(40, (16, 4)), torch.randn(16, 6))
    yield "first rows", (torch.zeros(16, 4).long(), torch.randn(16, 6))
    yield "last rows", (torch.full((16, 4), 39), torch.randn(16, 6))
    yield "small numbers", (torch.randint(40, (16, 4)), 1e-3 * torch.randn(16, 6))
    yield "large numbers", (torch.randint(40, (16, 4)), 10 * torch.randn(16, 6))
