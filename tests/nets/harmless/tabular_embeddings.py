"""A tabular net: eight columns of categories in tables, ten columns of numbers, and an MLP."""

import torch
from torch import nn

KIND = "harmless"

SIZES = (7, 12, 24, 31, 60, 110, 365, 2000)


class TabularNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = [min(16, (size + 1) // 2) for size in SIZES]
        self.tables = nn.ModuleList(map(nn.Embedding, SIZES, widths))
        self.numbers = nn.BatchNorm1d(10)
        self.body = nn.Sequential(
            nn.Linear(sum(widths) + 10, 128),
            nn.ReLU(),
            nn.BatchNorm1d(128),
            nn.Dropout(0.1),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.BatchNorm1d(64),
            nn.Dropout(0.1),
            nn.Linear(64, 1),
        )

    def forward(self, categories, numbers):
        columns = [table(categories[:, n]) for n, table in enumerate(self.tables)]
        return self.body(torch.cat([*columns, self.numbers(numbers)], 1)).squeeze(-1)


def make():
    net = TabularNet().eval()
    for module in net.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
    return net


def categories():
    return torch.stack([torch.randint(size, (64,)) for size in SIZES], 1)


def example():
    return categories(), torch.randn(64, 10)


def calls():
    yield "fresh", (categories(), torch.randn(64, 10))
    yield "first rows", (torch.zeros(64, 8, dtype=torch.int64), torch.randn(64, 10))
    yield "last rows", (torch.tensor(SIZES).sub(1).repeat(64, 1), torch.randn(64, 10))
    yield "zeros", (categories(), torch.zeros(64, 10))
    for scale in (1e-3, 100.0):
        yield f"numbers of scale {scale}", (categories(), scale * torch.randn(64, 10))
    yield "refused: a category beyond its table", (categories() + 2000, torch.randn(64, 10))
