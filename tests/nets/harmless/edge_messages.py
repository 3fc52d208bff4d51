"""A graph net over a list of edges: messages of pairs of nodes, summed by index_add."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Layer(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.message = nn.Sequential(
            nn.Linear(2 * width + 4, width), nn.ReLU(), nn.Linear(width, width)
        )
        self.update, self.norm = nn.Linear(2 * width, width), nn.LayerNorm(width)

    def forward(self, x, edges, kinds):
        source, target = edges
        messages = self.message(torch.cat([x[source], x[target], kinds], -1))
        total = torch.zeros_like(x).index_add(0, target, messages)
        return self.norm(x + F.silu(self.update(torch.cat([x, total], -1))))


class EdgeNet(nn.Module):
    def __init__(self, width=32) -> None:
        super().__init__()
        self.atoms, self.bonds = nn.Embedding(20, width), nn.Embedding(4, 4)
        self.layers = nn.ModuleList(Layer(width) for _ in range(3))
        self.head = nn.Linear(width, 1)

    def forward(self, atoms, edges, kinds):
        x, kinds = self.atoms(atoms), self.bonds(kinds)
        for layer in self.layers:
            x = layer(x, edges, kinds)
        return self.head(x.sum(0)), x


def make():
    return EdgeNet().eval()


def graph():
    return torch.randint(20, (40,)), torch.randint(40, (2, 120)), torch.randint(4, (120,))


def example():
    return graph()


def calls():
    yield "fresh", graph()
    atoms, edges, kinds = graph()
    yield "all edges at the first node", (atoms, 0 * edges, kinds)
    yield "all edges to the last node", (atoms, torch.stack([edges[0], 0 * edges[1] + 39]), kinds)
    yield "first rows", (0 * atoms, edges, 0 * kinds)
    yield "last rows", (0 * atoms + 19, edges, 0 * kinds + 3)
    yield "refused: no such node", (atoms, edges + 1, kinds)
