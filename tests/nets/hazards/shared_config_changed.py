"""Layers that read a flag of one config object they share, which the user sets by the net."""

from types import SimpleNamespace

import torch
from torch import nn

KIND = "state"


class Layer(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        self.config, self.first, self.second = config, nn.Linear(16, 32), nn.Linear(32, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        if self.config.norm_first:
            return x + self.second(torch.relu(self.first(self.norm(x))))
        return self.norm(x + self.second(torch.relu(self.first(x))))


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(norm_first=True, returns_all=False)
        self.layers = nn.ModuleList(Layer(self.config) for _ in range(2))

    def forward(self, x):
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return tuple(states) if self.config.returns_all else (states[-1],)


def make():
    return Stack().eval()


def example():
    return (torch.randn(3, 16),)


def change(net):
    net.config.norm_first = False


def with_states(net):
    net.config.returns_all = True
    return net(torch.ones(3, 16))


def calls():
    yield "norms last", (torch.randn(3, 16),)
    yield "with all states", with_states
    yield "fresh", lambda net: net(torch.linspace(-2, 2, 48).reshape(3, 16))
