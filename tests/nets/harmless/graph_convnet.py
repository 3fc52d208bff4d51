"""A graph net with a dense adjacency, normalised by degrees at each call, and a mean of nodes."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class GraphConvnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 32)
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(6))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(6))
        self.head = nn.Linear(32, 4)

    def forward(self, nodes, adjacency):
        own = torch.eye(adjacency.shape[-1], dtype=nodes.dtype, device=nodes.device)
        adjacency = adjacency.to(nodes.dtype) + own
        root = adjacency.sum(-1).pow(-0.5)
        adjacency = root.unsqueeze(-1) * adjacency * root.unsqueeze(-2)
        x = self.first(nodes)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + F.relu(adjacency @ layer(norm(x)))
        return self.head(x), self.head(x.mean(-2))


def make():
    return GraphConvnet().eval()


def graph(chance, scale=1.0):
    edges = (torch.rand(1, 30, 30) < chance).triu(1)
    return scale * torch.randn(1, 30, 12), edges | edges.mT


def example():
    return graph(0.1)


def calls():
    yield "fresh", graph(0.1)
    yield "no edges", graph(0.0)
    yield "all edges", graph(1.0)
    yield "small", graph(0.1, 1e-3)
    yield "large", graph(0.1, 100.0)
    yield "zeros", graph(0.1, 0.0)
