"""A binary cross entropy: targets and shares outside 0 to 1 must raise; 0 and 1 must not."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Loss(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.head = nn.Linear(8, 4)

    def forward(self, x, shares, target):
        guess = torch.sigmoid(self.head(x))
        return (
            self.tower(x),
            F.binary_cross_entropy(guess, target),
            F.binary_cross_entropy(shares, target, reduction="none"),
            F.binary_cross_entropy_with_logits(x[:, :4], target, reduction="none"),
        )


def make():
    return Loss().eval()


def example():
    return torch.rand(5, 8), 0.1 + 0.8 * torch.rand(5, 4), 0.1 + 0.8 * torch.rand(5, 4)


def calls():
    x, shares, target = torch.randn(5, 8), torch.rand(5, 4), torch.rand(5, 4)
    yield "targets of 0 and 1", (x, shares, target.round())
    yield "shares of 0 and 1", (x, shares.round(), target.round())
    yield "large scores", (8 * x, shares, target)
    yield "refused: target 1.5", (x, shares, target + 1.0)
    yield "refused: target -0.5", (x, shares, target - 1.0)
    yield "refused: share 1.2", (x, shares + 1.0, target)
    yield "refused: share -0.5", (x, shares - 1.0, target)
