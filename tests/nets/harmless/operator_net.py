"""An operator net: a sampled function and places, whose layers mix with each other, multiplied."""

import torch
from torch import nn

KIND = "harmless"


class OperatorNet(nn.Module):
    def __init__(self, width=48) -> None:
        super().__init__()
        self.encoders = nn.ModuleList([nn.Linear(50, width), nn.Linear(2, width)])
        self.branch = nn.ModuleList(nn.Linear(n, width) for n in (50, width, width))
        self.trunk = nn.ModuleList(nn.Linear(n, width) for n in (2, width, width))
        self.last = nn.Linear(width, width)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, function, places):
        left = torch.tanh(self.encoders[0](function)).unsqueeze(1)
        right = torch.tanh(self.encoders[1](places))
        u, y = function.unsqueeze(1), places
        for branch, trunk in zip(self.branch, self.trunk, strict=True):
            gate_u, gate_y = torch.sigmoid(branch(u)), torch.sigmoid(trunk(y))
            u, y = (1 - gate_u) * left + gate_u * right, (1 - gate_y) * left + gate_y * right
        values = (self.last(u) * y).sum(-1) + self.bias
        edge = (places[..., 0] * (1 - places[..., 0])).clamp(min=0)
        return values * 4 * edge


def make():
    return OperatorNet().eval()


def example():
    return torch.randn(1, 50), torch.rand(1, 40, 2)


def calls():
    yield "fresh", (torch.randn(1, 50), torch.rand(1, 40, 2))
    yield "small", (1e-3 * torch.randn(1, 50), torch.rand(1, 40, 2))
    yield "large", (100 * torch.randn(1, 50), torch.rand(1, 40, 2))
    yield "the zero function", (torch.zeros(1, 50), torch.rand(1, 40, 2))
    yield "the edges", (torch.randn(1, 50), torch.rand(1, 40, 2).round())
