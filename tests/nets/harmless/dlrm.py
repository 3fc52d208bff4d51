"""A recommender like DLRM: an MLP of numbers, tables of ids, dot products of all pairs, an MLP."""

import torch
from torch import nn

KIND = "harmless"

SIZES = (3, 20, 50, 100, 400, 1000)


class Dlrm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bottom = nn.Sequential(
            nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU()
        )
        self.tables = nn.ModuleList(nn.Embedding(size, 16) for size in SIZES)
        rows, columns = torch.tril_indices(7, 7, -1)
        self.register_buffer("rows", rows)
        self.register_buffer("columns", columns)
        self.top = nn.Sequential(
            nn.Linear(16 + 21, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
        )

    def forward(self, numbers, ids):
        dense = self.bottom(torch.log1p(numbers.clamp(min=0)))
        vectors = [dense, *(table(ids[:, n]) for n, table in enumerate(self.tables))]
        stacked = torch.stack(vectors, 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2))
        pairs = products[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([dense, pairs], 1)))


def make():
    return Dlrm().eval()


def ids():
    return torch.stack([torch.randint(size, (64,)) for size in SIZES], 1)


def example():
    return 10 * torch.rand(64, 13), ids()


def calls():
    yield "fresh", (10 * torch.rand(64, 13), ids())
    yield "first rows", (torch.rand(64, 13), torch.zeros(64, 6, dtype=torch.int64))
    yield "last rows", (torch.rand(64, 13), torch.tensor(SIZES).sub(1).repeat(64, 1))
    yield "no numbers", (torch.zeros(64, 13), ids())
    yield "large numbers", (100 * torch.rand(64, 13), ids())
    yield "some numbers below zero", (torch.randn(64, 13), ids())
