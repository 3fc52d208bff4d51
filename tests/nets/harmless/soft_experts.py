"""A recommender with multi-gate experts: two tasks, each with its own softmax over six MLPs."""

import torch
from torch import nn

KIND = "harmless"


class MultiGate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(50, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
            for _ in range(6)
        )
        self.gates = nn.ModuleList(nn.Linear(50, 6) for _ in range(2))
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1)) for _ in range(2)
        )

    def forward(self, x):
        expert = torch.stack([expert(x) for expert in self.experts], 1)
        outputs = []
        for gate, tower in zip(self.gates, self.towers, strict=True):
            weight = gate(x).softmax(-1).unsqueeze(-1)
            outputs.append(tower((expert * weight).sum(1)).sigmoid())
        return tuple(outputs)


def make():
    return MultiGate().eval()


def example():
    return (torch.randn(32, 50),)


def calls():
    yield "fresh", (torch.randn(32, 50),)
    yield "small", (1e-3 * torch.randn(32, 50),)
    yield "large", (20 * torch.randn(32, 50),)
    yield "zeros", (torch.zeros(32, 50),)
