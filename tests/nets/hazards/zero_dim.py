"""Tensors without dimensions: they do not set the dtype of a sum, those with one element do."""

import torch
from torch import nn

KIND = "form"


class Shifted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.5), requires_grad=False)

    def forward(self, x, shift):
        return (x + shift) * self.scale, (x + shift).amax(), torch.where(x > 0, x, shift)


def make():
    return Shifted().eval()


def example():
    return torch.randn(4, 6), torch.tensor(0.5)


def calls():
    x = torch.randn(4, 6)
    yield "float64 without a dimension", (x, torch.tensor(0.1, dtype=torch.float64))
    yield "float64 with one element", (x, torch.tensor([0.1], dtype=torch.float64))
    yield "a whole number", (x, torch.tensor(2))
    yield "whole numbers and a float", (torch.arange(24).view(4, 6), torch.tensor(0.5))
    yield "none has a dimension", (torch.tensor(1.0), torch.tensor(2.0))
    yield "a number of Python", (x, 3)
    yield "a truth value", (x, torch.tensor(True))
