"""Values gathered by places: negative and too large ones must raise."""

import torch
from torch import nn

KIND = "indices"


class Gathered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.proj = nn.Linear(8, 10)

    def forward(self, x, places):
        h = self.proj(x)
        return h.gather(1, places), x.gather(1, places)


def make():
    return Gathered().eval()


def example():
    return torch.rand(5, 8), torch.randint(1, 5, (5, 4))


def calls():
    x, places = torch.randn(5, 8), torch.randint(0, 5, (5, 4))
    yield "repeated", (x, places * 0)
    yield "the last", (x, places * 0 + 4)
    for wrong in (-1, 10, 2**32 + 1, -(2**32)):
        yield f"refused: place {wrong}", (x, places.index_fill(1, torch.tensor([0]), wrong))
