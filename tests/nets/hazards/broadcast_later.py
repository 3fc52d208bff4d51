"""A net of two tensors of one shape; later one of them is broadcast, or both are, to a third."""

import torch
from torch import nn

KIND = "form"


class Mixed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(8), requires_grad=False)

    def forward(self, a, b):
        return (a * b + self.bias).tanh(), torch.maximum(a, b).sum(0)


def make():
    return Mixed().eval()


def example():
    return torch.randn(8, 8), torch.randn(8, 8)


def calls():
    yield "a row", (torch.randn(8, 8), torch.randn(8))
    yield "a column", (torch.randn(8, 1), torch.randn(8, 8))
    yield "a row and a column", (torch.randn(1, 8), torch.randn(8, 1))
    yield "one number each", (torch.randn(1, 1), torch.randn(1, 1))
    yield "a batch", (torch.randn(3, 8, 8), torch.randn(8, 8))
    yield "refused: sizes that do not fit", (torch.randn(8, 8), torch.randn(8, 7))
