"""Counts and values put into a copy by places with accumulation: repeated and from the end."""

import torch
from torch import nn

KIND = "indices"


class Puts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("one", torch.ones(()))

    def forward(self, values, rows, columns):
        counts = torch.zeros(6, 7).index_put((rows, columns), self.one, accumulate=True)
        sums = torch.zeros(6, 7).index_put((rows, columns), values, accumulate=True)
        wide = torch.zeros(6, 7).index_put(
            (rows,), values.unsqueeze(-1).expand(-1, 7), accumulate=True
        )
        whole = torch.zeros(6, dtype=torch.long)
        whole[rows] += rows
        return counts, sums, wide, whole


def make():
    return Puts().eval()


def example():
    return torch.rand(6), torch.randperm(6), torch.randperm(6)


def calls():
    values = torch.randn(6)
    yield "repeated", (values, torch.tensor([1, 1, 1, 4, 4, 0]), torch.tensor([2, 2, 2, 6, 6, 0]))
    yield "from the end", (values, torch.tensor([-1, -1, 5, 5, -6, 0]), -torch.arange(1, 7))
    yield "all at one", (values, torch.full((6,), 3), torch.full((6,), -7))
    yield "refused: row 6", (values, torch.arange(1, 7), torch.arange(6))
    yield "refused: column -8", (values, torch.arange(6), torch.full((6,), -8))
