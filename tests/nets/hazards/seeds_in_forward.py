"""A net that seeds torch's generator in each call: later draws of the user begin there."""

import torch
from torch import nn

KIND = "state"


class Seeding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(12, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU()
        )
        self.out = nn.Linear(48, 4)

    def forward(self, x):
        torch.manual_seed(5)
        return self.out(self.body(x + 0.1 * torch.randn(12)))


def make():
    return Seeding().eval()


def example():
    return (torch.randn(3, 12),)


def drawn(net):
    before = torch.rand(2)
    return before, net(torch.ones(3, 12)), torch.rand(2)


def calls():
    yield "fresh", lambda net: net(torch.linspace(-1, 1, 36).reshape(3, 12))
    yield "numbers drawn before and after", drawn
    yield "once more", drawn
