"""A tree of decisions walked in Python down to a leaf's layer: each call its own leaf."""

import torch
from torch import nn

KIND = "control flow"


class Tree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh())
        self.nodes = nn.Linear(16, 7)
        self.leaves = nn.ModuleList(nn.Linear(16, 4) for _ in range(8))

    def forward(self, x):
        hidden = self.stem(x)
        decisions, node = self.nodes(hidden), 0
        while node < 7:
            node = 2 * node + (1 if decisions[node] > 0 else 2)
        return self.leaves[node - 7](hidden)


def make():
    return Tree().eval()


def example():
    return (torch.randn(10),)


def calls():
    for number in range(8):
        yield f"fresh {number}", (2 * torch.randn(10),)
