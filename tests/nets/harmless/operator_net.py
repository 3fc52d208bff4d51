"""An operator net: a branch of a sampled function, a trunk of places, and their products."""

import torch
from torch import nn

KIND = "harmless"


class OperatorNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            *(nn.Linear(50, 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 48)),
        )
        self.trunk = nn.Sequential(
            *(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 48)),
        )
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, function, places):
        values = torch.einsum("bk,pk->bp", self.branch(function), self.trunk(places)) + self.bias
        edge = (places[:, 0] * (1 - places[:, 0])).clamp(min=0)
        return values * 4 * edge


def make():
    return OperatorNet().eval()


def example():
    return torch.randn(16, 50), torch.rand(800, 2)


def calls():
    yield "fresh", (torch.randn(16, 50), torch.rand(800, 2))
    yield "small", (1e-3 * torch.randn(16, 50), torch.rand(800, 2))
    yield "large", (100 * torch.randn(16, 50), torch.rand(800, 2))
    yield "the zero function", (torch.zeros(16, 50), torch.rand(800, 2))
    yield "the edges", (torch.randn(16, 50), torch.rand(800, 2).round())
