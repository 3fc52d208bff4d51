"""A net that ends in nan_to_num: finite numbers hide a NaN or an infinity, and must be right."""

import torch
from torch import nn

KIND = "values"


class Filled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 8, bias=False)

    def forward(self, x):
        ratio = x / x.sum(-1, keepdim=True)
        root = x.sqrt()
        return (
            torch.nan_to_num(ratio, nan=0.5, posinf=10.0, neginf=-10.0),
            torch.nan_to_num(root.log(), -1.0, 50.0, -50.0),
            torch.nan_to_num(self.body(x), 3.0, 4.0, 5.0),
        )


def make():
    return Filled().eval()


def example():
    return (torch.rand(6, 8) + 0.5,)


def calls():
    yield "zeros", (torch.zeros(6, 8),)
    yield "negative", (-torch.rand(6, 8) - 0.5,)
    x = torch.rand(6, 8)
    x[0, 0], x[1, 1], x[2, 2] = float("nan"), float("inf"), -float("inf")
    yield "special values", (x,)
    yield "all infinite", (torch.full((6, 8), float("inf")),)
