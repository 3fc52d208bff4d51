"""Rows added to a table by index_add: places repeat, and a place out of range must raise."""

import torch
from torch import nn

KIND = "indices"


class AddedRows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(8, 5))

    def forward(self, x, places):
        added = self.start.index_add(0, places, x, alpha=0.5)
        copied = torch.zeros(8, 5).index_copy(0, places, torch.ones(4, 5))
        return added, copied


def make():
    return AddedRows().eval()


def example():
    return torch.rand(4, 5), torch.tensor([6, 1, 3, 2])


def calls():
    x = torch.randn(4, 5)
    yield "repeated", (x, torch.tensor([2, 2, 2, 5]))
    yield "all at the end", (x, torch.tensor([7, 7, 7, 7]))
    yield "refused: place 8", (x, torch.tensor([1, 8, 2, 3]))
    yield "refused: place -1", (x, torch.tensor([1, -1, 2, 3]))
