"""A net whose outputs are views of its argument; writing into them writes into the argument."""

import torch
from torch import nn

KIND = "form"


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Linear(12, 12)

    def forward(self, x):
        return x[:, 2:6], x.flatten(), x.T, x[1], x.unflatten(1, (3, 4)), self.scale(x)


def make():
    return Views().eval()


def example():
    return (torch.randn(4, 12),)


def written(net):
    x = torch.randn(4, 12)
    part, flat, turned, row, blocks, _ = net(x)
    part.zero_()
    flat[0] = 1
    turned[11, 3] = 2
    row[10] = 3
    blocks[2, 0, 0] = 4
    return x


def calls():
    yield "fresh", (torch.randn(4, 12),)
    yield "a transposed argument, of which the flat one is a copy", (torch.randn(12, 4).T,)
    yield "a slice of a larger tensor", (torch.randn(4, 20)[:, 4:16],)
    yield "writing", written
