"""The largest three and smallest two values where some are NaN, which ranks above all numbers."""

import torch
from torch import nn

KIND = "indices"


class Ranked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(19) + 0.5)

    def forward(self, x):
        x = x * self.weight
        largest, places = x.topk(3)
        smallest, last = x.topk(2, largest=False)
        return largest, places, smallest, last


def make():
    return Ranked().eval()


def example():
    return (torch.rand(4, 19),)


def calls():
    yield "negative", (-torch.rand(4, 19),)
    x = torch.randn(4, 19)
    x[0, 7], x[1, 0], x[2, 18] = float("nan"), float("nan"), float("nan")
    yield "one NaN a row", (x.clone(),)
    x[3, :5] = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.5, -0.5])
    yield "infinities beside a NaN", (x,)
