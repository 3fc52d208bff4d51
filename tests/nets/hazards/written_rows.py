"""Rows written and filled by index: places may repeat, and those out of range must raise."""

import torch
from torch import nn

KIND = "indices"


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(8, 5))

    def forward(self, x, places):
        filled = self.start.index_fill(0, places, 7.0)
        put = self.start.clone()
        put[places] = 3.0
        summed = self.start.index_put((places,), x, accumulate=True)
        return filled, put, summed


def make():
    return Written().eval()


def example():
    return torch.rand(4, 5), torch.tensor([6, 1, 3, 2])


def calls():
    x = torch.randn(4, 5)
    yield "repeated", (x, torch.tensor([2, 2, 2, 5]))
    yield "all at the end", (x, torch.tensor([7, 7, 7, 7]))
    yield "refused: place 8", (x, torch.tensor([1, 8, 2, 3]))
    yield "refused: place -9", (x, torch.tensor([1, -9, 2, 3]))
    yield "refused: place 2^32", (x, torch.tensor([1, 2**32, 2, 3]))
