"""Whole numbers that are indices only together: each is in its range, and their sum need not be."""

import torch
from torch import nn

KIND = "indices"


class Moved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(12, 16)
        self.head = nn.Linear(16, 16)

    def forward(self, ids, offset):
        return torch.relu(self.head(self.table(ids + offset)))


def make():
    return Moved().eval()


def example():
    return torch.tensor([[0, 3, 8, 1]]), torch.tensor([[8, 2, 0, 1]])


def calls():
    yield "the last row", (torch.tensor([[5, 3, 8, 1]]), torch.tensor([[6, 8, 3, 1]]))
    yield "a sum beyond the table", (torch.tensor([[8, 3, 8, 1]]), torch.tensor([[8, 2, 0, 1]]))
    yield "a sum below it", (torch.tensor([[0, 3, -1, 1]]), torch.tensor([[8, 2, 0, 1]]))
    yield "another sum beyond it", (torch.tensor([[7, 7, 7, 7]]), torch.tensor([[1, 2, 3, 6]]))
