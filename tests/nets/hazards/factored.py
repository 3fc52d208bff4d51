"""Factors of matrices, singular ones too, whose signs and order are open."""

import torch
from torch import nn

KIND = "values"


class Factored(nn.Module):
    def forward(self, x):
        square = x @ x.transpose(-1, -2)
        return (
            torch.linalg.eigvalsh(square),
            torch.linalg.svdvals(x),
            torch.linalg.det(square),
            torch.linalg.pinv(x),
            torch.linalg.matrix_exp(square / 100),
            torch.linalg.matrix_rank(x),
        )


def make():
    return Factored().eval()


def example():
    return (torch.randn(2, 4, 4),)


def calls():
    yield "other values", (torch.randn(2, 4, 4),)
    yield "singular", (torch.ones(2, 4, 4),)
    yield "zeros", (torch.zeros(2, 4, 4),)
