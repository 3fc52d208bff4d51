"""Diagonals taken and made: a NaN or an infinity off the diagonal leaves no trace."""

import torch
from torch import nn

KIND = "values"


class Diagonals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(8) + 0.5)

    def forward(self, x):
        diagonal = x.diagonal(dim1=-2, dim2=-1) * self.scale
        return (
            diagonal,
            diagonal.sum(-1),
            torch.diag_embed(diagonal),
            x[0].trace(),
            x[1].diag(1) + 1,
        )


def make():
    return Diagonals().eval()


def example():
    return (torch.rand(3, 8, 8),)


def calls():
    for value in (float("nan"), float("inf"), -float("inf")):
        x = torch.randn(3, 8, 8)
        x[:, 0, 7] = x[0, 5, 2] = value
        yield f"{value} beside it", (x,)
    yield "all NaN", (torch.full((3, 8, 8), float("nan")),)
    yield "large", (torch.full((3, 8, 8), 3e38),)
