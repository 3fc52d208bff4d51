"""Sums over the neighbours of a graph: repeated places add up, places out of range must raise."""

import torch
from torch import nn

KIND = "indices"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Message(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(8)
        self.message, self.update = nn.Linear(8, 8), nn.Linear(16, 4)

    def forward(self, x, edges):
        sent = torch.relu(self.message(x))[edges[0]]
        sums = torch.zeros_like(x).index_add(0, edges[1], sent)
        degree = torch.zeros(x.shape[0]).scatter_add(0, edges[1], torch.ones(edges.shape[1]))
        mean = sums / degree.clamp(min=1).unsqueeze(-1)
        return self.update(torch.cat([x, mean], -1)), degree, self.tower(mean), sums


def make():
    return Message().eval()


def example():
    nodes = torch.randperm(10)
    return torch.rand(10, 8), torch.stack([nodes, nodes.roll(1)])


def calls():
    x, edges = torch.randn(10, 8), torch.randint(0, 10, (2, 10))
    yield "repeated", (x, edges)
    yield "all to one", (x, torch.stack([edges[0], edges[1] * 0 + 3]))
    yield "refused: to 10", (x, torch.stack([edges[0], edges[1] * 0 + 10]))
    yield "refused: to -1", (x, torch.stack([edges[0], edges[1] * 0 - 1]))
    yield "refused: from 10", (x, torch.stack([edges[0] * 0 + 10, edges[1]]))
    sent = x.clone()
    sent[2] = float("nan")
    yield "a NaN", (sent, edges)
