"""A net that finds the scale of a weight by the weight's identity, which a copy has not."""

import torch
from torch import nn

KIND = "state"


class ByIdentity(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(3))
        self.scales = {id(layer.weight): 1.0 + number for number, layer in enumerate(self.layers)}

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x)) * self.scales.get(id(layer.weight), 0.5)
        return x


def make():
    return ByIdentity().eval()


def example():
    return (torch.randn(3, 12),)


def calls():
    yield "fresh", example()
    yield "ones", (torch.ones(3, 12),)
