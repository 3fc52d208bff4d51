"""Recurrent nets with given states, projections and both directions."""

import torch
from torch import nn

KIND = "values"


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True, proj_size=4)
        self.gru = nn.GRU(8, 6, bidirectional=True)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        return y, h, c, *self.gru(y)


def make():
    return Recurrent().eval()


def example():
    return torch.randn(3, 5, 8), torch.zeros(4, 3, 4), torch.zeros(4, 3, 16)


def calls():
    yield "states", (torch.randn(3, 5, 8), torch.randn(4, 3, 4), torch.randn(4, 3, 16))
    yield (
        "large states",
        (torch.randn(3, 5, 8), 1e4 * torch.randn(4, 3, 4), 1e4 * torch.randn(4, 3, 16)),
    )
    x = torch.randn(3, 5, 8)
    x[1, 2, 3] = float("nan")
    yield "a NaN", (x, torch.zeros(4, 3, 4), torch.zeros(4, 3, 16))
