"""A residual net that leaves out branches whose gate is 0: gates are opened after optimisation."""

import torch
from torch import nn

KIND = "control flow"


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = nn.Parameter(torch.tensor([1.0, 0.0, 0.5]))
        self.branches = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16))
            for _ in range(3)
        )

    def forward(self, x):
        gates = self.gates.tolist()
        for number, branch in enumerate(self.branches):
            if gates[number] != 0:
                x = x + self.gates[number] * branch(x)
        return x


def make():
    return Gated().eval()


def example():
    return (torch.randn(2, 16),)


def opened(number, value):
    def use(net):
        net.gates[number] = value
        return net(torch.ones(2, 16))

    return use


def calls():
    yield "fresh", (torch.randn(2, 16),)
    yield "a gate opened", opened(1, 2.0)
    yield "a gate closed", opened(0, 0.0)
    yield "again", lambda net: net(torch.linspace(-1, 1, 32).reshape(2, 16))
