"""Outputs in a named tuple and in torch's own, as `max` and `topk` return: fields have names."""

from typing import NamedTuple

import torch
from torch import nn

KIND = "form"


class Output(NamedTuple):
    best: torch.return_types.max
    top: torch.return_types.topk
    scores: torch.Tensor


class Ranked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 12)

    def forward(self, x):
        scores = self.net(x)
        return Output(scores.max(-1), scores.topk(3), scores)


def make():
    return Ranked().eval()


def example():
    return (torch.randn(4, 8),)


def fields(net):
    output = net(torch.linspace(-1, 1, 32).view(4, 8))
    return output.best.indices, output.top.values, output._fields, type(output.best).__name__


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "more rows", (torch.randn(6, 8),)
    yield "fields", fields
