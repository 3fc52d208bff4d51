"""Rows chosen by a condition on their values: none, some or all of them."""

import torch
from torch import nn

KIND = "indices"


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 4)

    def forward(self, x):
        on = x[:, 0] > 0
        places = on.nonzero().squeeze(-1)
        return self.body(x[on]), places, torch.masked_select(x, x > 1), x[on].sum(0)


def make():
    return Chosen().eval()


def example():
    return (torch.rand(7, 8) + 0.1,)


def calls():
    yield "some", (torch.randn(7, 8),)
    yield "none", (-torch.rand(7, 8),)
    x = torch.randn(7, 8)
    x[2, 0] = float("nan")
    yield "a NaN", (x,)
    yield "all and large", (100 + torch.rand(7, 8),)
