"""Convolutions with other paddings, groups, dilation and output padding."""

import torch
from torch import nn

KIND = "values"


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.circular = nn.Conv2d(4, 8, 3, padding=1, padding_mode="circular")
        self.reflected = nn.Conv2d(8, 8, 3, padding=2, dilation=2, groups=4, padding_mode="reflect")
        self.replicated = nn.Conv2d(8, 4, (1, 3), padding="same", padding_mode="replicate")
        self.up = nn.ConvTranspose2d(4, 4, 3, 2, 1, output_padding=1, groups=2)
        self.line = nn.ConvTranspose1d(4, 4, 4, 3, dilation=2, bias=False)

    def forward(self, x):
        x = self.replicated(torch.relu(self.reflected(torch.relu(self.circular(x)))))
        return self.up(x), self.line(x.mean(2))


def make():
    return Convolutions().eval()


def example():
    return (torch.randn(2, 4, 7, 9),)


def calls():
    yield "other values", (torch.randn(2, 4, 7, 9),)
    yield "channels last", (torch.randn(2, 4, 7, 9).to(memory_format=torch.channels_last),)
    x = torch.randn(2, 4, 7, 9)
    x[0, 1, 3, 3], x[1, 2, 0, 0] = float("nan"), float("inf")
    yield "special values", (x,)
    yield "large", (1e20 * torch.randn(2, 4, 7, 9),)
