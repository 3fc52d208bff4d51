"""Distinct ids with their counts and places: as many as the values have."""

import torch
from torch import nn

KIND = "indices"


class Distinct(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(64, 8)

    def forward(self, ids):
        words, back, counts = torch.unique(ids, return_inverse=True, return_counts=True)
        runs, lengths = torch.unique_consecutive(ids, return_counts=True)
        return self.table(words)[back], words, counts, runs, lengths


def make():
    return Distinct().eval()


def example():
    return (torch.randperm(64)[:20],)


def calls():
    yield "repeated", (torch.randint(0, 6, (20,)),)
    yield "all equal", (torch.full((20,), 5),)
    yield "in runs", (torch.arange(20) // 4,)
    yield "refused: id 64", (torch.arange(20) + 60,)
