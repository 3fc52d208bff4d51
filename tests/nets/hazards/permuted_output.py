"""A convnet whose output is permuted to channels last; with eager's strides `.view` works."""

import torch
from torch import nn

KIND = "form"


class Permuted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).permute(0, 2, 3, 1)


def make():
    return Permuted().eval()


def example():
    return (torch.randn(2, 3, 12, 12),)


def calls():
    x = torch.randn(2, 3, 12, 12)
    yield "channels last", (x.to(memory_format=torch.channels_last),)
    yield "another size", (torch.randn(1, 3, 8, 20),)
    yield "a view in the former order", lambda net: net(x).permute(0, 3, 1, 2).view(2, -1)
    yield "refused: a flat view of the output", lambda net: net(x).view(-1)
