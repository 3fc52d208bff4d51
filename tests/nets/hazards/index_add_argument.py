"""A net that adds rows into an argument at places that may repeat, and returns the argument."""

import torch
from torch import nn

KIND = "form"


class Summed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, total, where, x):
        total.index_add_(0, where, self.net(x))
        total[where] += 1
        return total


def make():
    return Summed().eval()


def example():
    return torch.zeros(6, 8), torch.tensor([0, 3, 2, 5]), torch.randn(4, 8)


def summed_twice(net):
    total, x = torch.zeros(6, 8), torch.ones(4, 8)
    first = net(total, torch.tensor([0, 1, 2, 3]), x)
    return net(first, torch.tensor([1, 1, 1, 1]), x), total, first is total


def calls():
    x = torch.randn(4, 8)
    yield "places that repeat", (torch.randn(6, 8), torch.tensor([1, 1, 2, 1]), x)
    yield "part of a larger total", (torch.randn(6, 16)[:, 8:], torch.tensor([5, 4, 5, 4]), x)
    yield "two calls for one total", summed_twice
    yield "refused: a place too far", (torch.zeros(6, 8), torch.tensor([0, 1, 2, 6]), x)
    yield "refused: a total in whole numbers", (torch.zeros(6, 8).long(), torch.arange(4), x)
