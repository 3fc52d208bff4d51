"""A net that is shown a sparse adjacency, with a sparse output; other entries come later."""

import torch
from torch import nn

KIND = "form"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(8, 4)

    def forward(self, adjacency, x):
        return torch.sparse.mm(adjacency, self.net(x)), adjacency * 2


def make():
    return Scaled().eval()


def edges(count):
    places = torch.stack([torch.arange(count) % 6, torch.arange(count) * 5 % 6])
    return torch.sparse_coo_tensor(places, torch.rand(count), (6, 6), check_invariants=True)


def example():
    return edges(4).coalesce(), torch.randn(6, 8)


def calls():
    x = torch.randn(6, 8)
    yield "as many entries", (edges(4).coalesce(), x)
    yield "more entries", (edges(9), x)
    yield "no entry", (edges(0), x)
    yield "layout", lambda net: str(net(edges(3), x)[1].layout)
    yield "refused: other nodes", (edges(4), torch.randn(5, 8))
