"""A generator of waves from mel bands by transposed convolutions and stacks of dilations."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Stack(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(width, width, 3, dilation=d, padding=d) for d in (1, 3, 5)
        )

    def forward(self, x):
        for conv in self.convs:
            x = x + conv(F.leaky_relu(x, 0.1))
        return x


class Vocoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(40, 48, 7, padding=3)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(w, w // 2, 2 * s, s, s // 2) for w, s in ((48, 4), (24, 4))
        )
        self.stacks = nn.ModuleList([Stack(24), Stack(12)])
        self.last = nn.Conv1d(12, 1, 7, padding=3)

    def forward(self, mel):
        x = self.first(mel)
        for up, stack in zip(self.ups, self.stacks, strict=True):
            x = stack(up(F.leaky_relu(x, 0.1)))
        return torch.tanh(self.last(F.leaky_relu(x))).squeeze(1)


def make():
    return Vocoder().eval()


def example():
    return (torch.randn(1, 40, 24),)


def calls():
    yield "fresh", (torch.randn(1, 40, 24),)
    yield "logarithms of silence", (torch.full((1, 40, 24), -11.5),)
    yield "small", (1e-3 * torch.randn(1, 40, 24),)
    yield "zeros", (torch.zeros(1, 40, 24),)
