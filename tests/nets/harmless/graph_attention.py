"""Attention over the neighbours of each node, by scores of pairs under a mask of edges."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Layer(nn.Module):
    def __init__(self, width_in, width, heads) -> None:
        super().__init__()
        self.heads, self.project = heads, nn.Linear(width_in, heads * width, bias=False)
        self.left = nn.Parameter(0.3 * torch.randn(heads, width))
        self.right = nn.Parameter(0.3 * torch.randn(heads, width))

    def forward(self, x, is_edge):
        h = self.project(x).unflatten(-1, (self.heads, -1))
        left, right = (h * self.left).sum(-1), (h * self.right).sum(-1)
        scores = F.leaky_relu(left.unsqueeze(1) + right.unsqueeze(0), 0.2)
        scores = scores.masked_fill(~is_edge.unsqueeze(-1), float("-inf"))
        return torch.einsum("ijh,jhd->ihd", scores.softmax(1), h).flatten(1)


class GraphAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Layer(16, 8, 4), Layer(32, 6, 1)

    def forward(self, nodes, edges):
        is_edge = edges | torch.eye(len(nodes), dtype=torch.bool, device=nodes.device)
        return self.second(F.elu(self.first(nodes, is_edge)), is_edge).log_softmax(-1)


def make():
    return GraphAttention().eval()


def graph(chance, scale=1.0):
    return scale * torch.randn(64, 16), torch.rand(64, 64) < chance


def example():
    return graph(0.1)


def calls():
    yield "fresh", graph(0.1)
    yield "no edges", graph(0.0)
    yield "all edges", graph(1.0)
    yield "small", graph(0.1, 1e-3)
    yield "large", graph(0.1, 100.0)
    yield "zeros", graph(0.1, 0.0)
