"""A net that reads numbers and flags of a config object, which the user changes in place."""

from dataclasses import dataclass

import torch
from torch import nn

KIND = "state"


@dataclass
class Config:
    scale: float = 1.0
    is_residual: bool = True


class Configured(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        self.config = config
        self.body = nn.Sequential(
            nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 16)
        )

    def forward(self, x):
        out = self.config.scale * self.body(x)
        return x + out if self.config.is_residual else out


def make():
    return Configured(Config()).eval()


def example():
    return (torch.randn(3, 16),)


def change(net):
    net.config.scale = 4.0


def without_residual(net):
    net.config.is_residual = False
    return net(torch.ones(3, 16))


def calls():
    yield "another scale", (torch.randn(3, 16),)
    yield "without its residual", without_residual
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 48).reshape(3, 16))
