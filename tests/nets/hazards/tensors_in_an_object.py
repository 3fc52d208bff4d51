"""A net with statistics as tensors in an object of its own, which the user updates."""

import torch
from torch import nn

KIND = "state"


class Statistics:
    def __init__(self, size) -> None:
        self.mean, self.deviation = torch.zeros(size), torch.ones(size)

    def update(self, rows):
        self.mean = rows.mean(0)
        self.deviation.copy_(rows.std(0))


class Standardised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.statistics = Statistics(12)
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        x = (x - self.statistics.mean) / (self.statistics.deviation + 1e-3)
        return self.out(self.body(x))


def make():
    return Standardised().eval()


def example():
    return (torch.randn(3, 12),)


def updated(net):
    net.statistics.update(3 + 2 * torch.linspace(-1, 2, 60).reshape(5, 12).sin())
    return net(torch.ones(3, 12))


def shifted(net):
    net.statistics.mean.sub_(5)
    return net(torch.ones(3, 12))


def calls():
    yield "fresh", (torch.randn(3, 12),)
    yield "updated", updated
    yield "shifted in place", shifted
