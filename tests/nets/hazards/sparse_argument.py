"""A graph convolution whose adjacency is sparse, in several layouts, with entries that repeat."""

import torch
from torch import nn

KIND = "form"


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, adjacency, x):
        return self.last(adjacency @ torch.relu(adjacency @ self.first(x)))


def make():
    return Convolution().eval()


def dense():
    return torch.rand(6, 6) * (torch.rand(6, 6) > 0.5)


def example():
    return dense(), torch.randn(6, 8)


def calls():
    x = torch.randn(6, 8)
    places = torch.tensor([[0, 0, 1, 5], [2, 2, 4, 0]])
    repeated = torch.sparse_coo_tensor(places, torch.ones(4), (6, 6), check_invariants=True)
    yield "coordinates", (dense().to_sparse(), x)
    yield "coordinates that repeat", (repeated, x)
    yield "compressed rows", lambda net: net(torch.eye(6).to_sparse_csr(), x)
    yield "no entry", (torch.zeros(6, 6).to_sparse(), x)
    yield "dense", (dense(), x)
    yield "refused: other nodes", (torch.eye(5).to_sparse(), x)
