"""A forecaster by a GRU that continues from a state and returns the new one."""

import torch
from torch import nn

KIND = "harmless"


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
        self.gru = nn.GRU(32, 48, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 24))

    def forward(self, history, state):
        hidden, state = self.gru(self.first(history), state)
        return self.head(hidden[:, -1]), state


def make():
    return Forecaster().eval()


def example():
    return torch.randn(4, 24, 6), torch.zeros(1, 4, 48)


def calls():
    yield "fresh", (torch.randn(4, 24, 6), torch.zeros(1, 4, 48))
    yield "from another state", (torch.randn(4, 24, 6), torch.randn(1, 4, 48).tanh())
    yield "small", (1e-3 * torch.randn(4, 24, 6), torch.zeros(1, 4, 48))
    yield "large", (100 * torch.randn(4, 24, 6), torch.zeros(1, 4, 48))
    yield "zeros", (torch.zeros(4, 24, 6), torch.zeros(1, 4, 48))
