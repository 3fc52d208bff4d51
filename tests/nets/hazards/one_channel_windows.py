"""Windows of one channel with wide strides; with channels last oneDNN misreads them, in eager
torch 2.13 too.
"""

import torch
from torch import nn

KIND = "form"


class Patches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 16, (5, 7), stride=(1, 2))
        self.second = nn.Conv2d(1, 8, (1, 5), stride=(1, 3), padding=(0, 2))
        self.last = nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.last(torch.relu(self.first(x)))), self.second(x)


def make():
    return Patches().eval()


def example():
    return (torch.randn(2, 1, 15, 8),)


def calls():
    yield "fresh", example()
    yield "another batch", (torch.randn(5, 1, 15, 8),)
