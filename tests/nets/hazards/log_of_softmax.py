"""The logarithm of a softmax taken in two steps: minus infinity where the softmax underflows."""

import torch
from torch import nn

KIND = "values"


class LogShares(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(10))

    def forward(self, x):
        x = x * self.scale
        shares = torch.log(x.softmax(-1))
        odds = torch.log(torch.sigmoid(x))
        entropy = -(x.softmax(-1) * torch.log(x.softmax(-1))).sum(-1)
        return shares, odds, entropy, torch.log(torch.exp(x)), torch.sqrt(x * x)


def make():
    return LogShares().eval()


def example():
    return (torch.rand(5, 10),)


def calls():
    for scale in (10.0, 200.0, 1e4, 1e25):
        x = torch.zeros(5, 10)
        x[:, 0], x[:, 1] = scale, -scale
        yield f"far apart by {scale:g}", (x,)
    yield "all of -200", (torch.full((5, 10), -200.0),)
    yield "all of 100", (torch.full((5, 10), 100.0),)
