"""A net that writes into its argument through views of it."""

import torch
from torch import nn

KIND = "form"


class Written(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(12, 12)

    def forward(self, x):
        x[:, 0] = 1
        x.view(-1)[5] += 2
        x.T[3].mul_(-1)
        first, *_, last = x.unbind(0)
        last.copy_(first)
        return self.net(x), x.diagonal()


def make():
    return Written().eval()


def example():
    return (torch.randn(4, 12),)


def calls():
    yield "fresh", (torch.randn(4, 12),)
    yield "a slice of a larger tensor", (torch.randn(12, 12)[4:8],)
    yield "more rows", (torch.randn(9, 12),)
    yield "refused: columns, of which there is no flat view", (torch.randn(12, 4).T,)
