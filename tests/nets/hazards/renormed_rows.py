"""An embedding that shortens rows of its weight when they are looked up, and short ones never."""

import torch
from torch import nn

KIND = "state"


class Renormed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(20, 8, max_norm=1.0)
        self.head = nn.Linear(8, 8)
        with torch.no_grad():
            self.table.weight[:10] *= 0.01
            self.table.weight[10:] *= 10.0

    def forward(self, ids):
        return torch.relu(self.head(self.table(ids)))


def make():
    return Renormed().eval()


def example():
    return (torch.tensor([[1, 2, 3, 4]]),)


def calls():
    yield "short rows", (torch.tensor([[5, 6, 7, 8]]),)
    yield "long rows", (torch.tensor([[1, 12, 13, 14]]),)
    yield "long rows again", (torch.tensor([[12, 12, 13, 1]]),)
