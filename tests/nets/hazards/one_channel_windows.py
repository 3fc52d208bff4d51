"""Windows of one channel with wide strides, which oneDNN misreads with channels last."""

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
    yield "channels last", (torch.randn(2, 1, 15, 8).to(memory_format=torch.channels_last),)
    yield "another batch", (torch.randn(5, 1, 15, 8),)
