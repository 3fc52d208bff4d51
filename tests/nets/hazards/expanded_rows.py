"""Index operations on expanded tensors: sources that share memory are read at each place."""

import torch
from torch import nn

KIND = "indices"


class Expanded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.row = nn.Parameter(torch.randn(1, 6))

    def forward(self, x, places):
        wide = self.row.expand(5, 6)
        added = wide.index_put((places,), x[:1].expand(4, 6), accumulate=True)
        taken = wide.gather(0, places.unsqueeze(-1).expand(4, 6)) + x
        scattered = torch.zeros(5, 6).scatter_add(0, places.unsqueeze(-1).expand(4, 6), x)
        chosen = x[:1].expand(5, 6)[places]
        return added, taken, scattered, chosen, wide.argmax(0), x[:, :1].expand(4, 6).argmax(-1)


def make():
    return Expanded().eval()


def example():
    return torch.rand(4, 6), torch.tensor([0, 3, 1, 4])


def calls():
    x = torch.randn(4, 6)
    yield "repeated", (x, torch.tensor([2, 2, 2, 2]))
    yield "special values", (x.index_fill(1, torch.tensor([0]), float("nan")), torch.arange(4))
    yield "refused: place 5", (x, torch.tensor([1, 5, 2, 3]))
    yield "refused: place -1", (x, torch.tensor([1, -1, 2, 3]))
