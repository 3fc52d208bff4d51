"""A layer that returns its output and None, or the output and its weights, as attention does."""

import torch
from torch import nn

KIND = "form"


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, x, weights=False):
        return self.attention(x, x, x, need_weights=weights)


def make():
    return Attention().eval()


def example():
    return (torch.randn(2, 6, 16),)


def calls():
    yield "fresh", (torch.randn(2, 6, 16),)
    yield "with weights", (torch.randn(2, 6, 16), True)
    yield "longer", (torch.randn(2, 9, 16),)
    yield "what is None", lambda net: net(torch.ones(2, 6, 16))[1] is None
