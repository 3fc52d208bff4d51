"""An LSTM and a GRU on large and NaN steps: gates saturate, and a NaN stays in its row."""

import torch
from torch import nn

KIND = "values"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 12, batch_first=True)
        self.gru = nn.GRU(8, 12, batch_first=True)

    def forward(self, x):
        long, (h, c) = self.lstm(x)
        short, last = self.gru(x)
        return long.contiguous(), h, c, short.contiguous(), last


def make():
    return Recurrent().eval()


def example():
    return (torch.rand(2, 6, 8),)


def calls():
    yield "of 1e4", (1e4 * torch.randn(2, 6, 8),)
    yield "of 1e30", (1e30 * torch.randn(2, 6, 8).sign(),)
    x = torch.randn(2, 6, 8)
    x[1, 3, 0] = float("nan")
    yield "a NaN at a step", (x,)
    yield "silence", (torch.zeros(2, 6, 8),)
