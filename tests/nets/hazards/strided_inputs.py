"""Elementwise ops, whose output is laid out like the input: columns, slices, rows that repeat."""

import torch
from torch import nn

KIND = "form"


class Elementwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(16, 16)

    def forward(self, x):
        y = torch.relu(x) * 2 + 1
        return y, torch.zeros_like(x), x.clone(), self.net(y)


def make():
    return Elementwise().eval()


def example():
    return (torch.randn(4, 16),)


def calls():
    yield "columns", (torch.randn(16, 4).T,)
    yield "every second column", (torch.randn(4, 32)[:, ::2],)
    yield "rows that repeat", (torch.randn(1, 16).expand(4, 16),)
    yield "columns that repeat", (torch.randn(4, 1).expand(4, 16),)
    yield "windows that overlap", (torch.randn(19).unfold(0, 16, 1),)
    yield "an odd address", (torch.randn(65)[1:].view(4, 16),)
    yield "three dimensions, turned", (torch.randn(16, 4, 3).permute(2, 1, 0),)
