"""Ids that come as floats and are truncated: out of range they must raise, and NaN as well."""

import torch
from torch import nn

KIND = "indices"


class FloatIds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(30, 8)
        self.out = nn.Linear(9, 3)

    def forward(self, features):
        ids, rest = features[:, 0], features[:, 1:]
        return self.out(torch.cat([self.table(ids.long()), rest], -1))


def make():
    return FloatIds().eval()


def _features(value):
    return torch.stack([torch.full((5,), value), torch.randn(5)], -1)


def example():
    return (torch.stack([torch.randint(1, 29, (5,)) + 0.25, torch.rand(5)], -1),)


def calls():
    yield "fractions", (_features(29.75),)
    yield "just below 0", (_features(-0.5),)
    for wrong in (30.0, -1.0, float("nan"), float("inf"), 4294967298.0):
        yield f"refused: {wrong:g}", (_features(wrong),)
