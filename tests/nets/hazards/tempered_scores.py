"""Scores divided by a temperature: at 0 they are infinite, and their shares NaN."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Tempered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(16)
        self.head = nn.Linear(16, 20)

    def forward(self, x, temperature, cut):
        scores = self.head(x) / temperature
        sorted_scores, order = scores.topk(20)
        shares = sorted_scores.softmax(-1)
        keep = shares.cumsum(-1) - shares < cut
        left = sorted_scores.masked_fill(~keep, -float("inf")).softmax(-1)
        return (
            self.tower(x),
            left,
            order,
            keep.sum(-1),
            torch.zeros_like(left).scatter(-1, order, left),
        )


def make():
    return Tempered().eval()


def example():
    return torch.rand(4, 16), torch.tensor(1.0), torch.tensor(2.0)


def calls():
    x = torch.randn(4, 16)
    yield "cold", (x, torch.tensor(1e-3), torch.tensor(2.0))
    yield "nothing kept", (x, torch.tensor(1.0), torch.tensor(0.0))
    yield "the best alone", (x, torch.tensor(1.0), torch.tensor(1e-6))
    yield "temperature 0", (x, torch.tensor(0.0), torch.tensor(2.0))
    yield "temperature infinite", (x, torch.tensor(float("inf")), torch.tensor(2.0))
