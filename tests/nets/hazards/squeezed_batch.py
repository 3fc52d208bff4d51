"""A net that squeezes all dimensions of size 1 and is shown a batch of one."""

import torch
from torch import nn

KIND = "form"


class Squeezed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Conv1d(4, 8, 3, padding=1)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        y = self.net(x).mean(-1, keepdim=True).squeeze()
        return self.head(y).squeeze() + x[..., 0].squeeze().sum()


def make():
    return Squeezed().eval()


def example():
    return (torch.randn(1, 4, 6),)


def calls():
    yield "a batch of one", (torch.randn(1, 4, 6),)
    yield "a batch of three", (torch.randn(3, 4, 6),)
    yield "one step", (torch.randn(2, 4, 1),)
    yield "no batch", (torch.randn(4, 6),)
    yield "refused: one channel", (torch.randn(1, 1, 6),)
