"""A net that returns a dataclass with a default, a named tuple and a property."""

from collections import namedtuple
from dataclasses import dataclass

import torch
from torch import nn

KIND = "form"

Range = namedtuple("Range", ["low", "high"])


@dataclass
class Prediction:
    scores: torch.Tensor
    span: Range
    labels: torch.Tensor | None = None

    @property
    def width(self):
        return self.span.high - self.span.low


class Predictor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, x):
        y = self.net(x)
        return Prediction(y, Range(y.amin(-1), y.amax(-1)))


def make():
    return Predictor().eval()


def example():
    return (torch.randn(4, 8),)


def calls():
    yield "fresh", (torch.randn(4, 8),)
    yield "more rows", (torch.randn(7, 8),)
    yield "the property", lambda net: net(torch.ones(4, 8)).width
    yield "the name", lambda net: type(net(torch.ones(4, 8)).span).__name__
