"""A net that counts its labels by bincount: as many counts as the largest label of each call."""

import torch
from torch import nn

KIND = "control flow"


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 3))

    def forward(self, labels):
        counts = torch.bincount(labels, minlength=4).to(self.body[0].weight.dtype)
        return self.body(counts[:, None] / counts.sum())


def make():
    return Counted().eval()


def example():
    return (torch.tensor([0, 1, 1, 2, 3, 2, 0, 1]),)


def calls():
    yield "fewer labels", (torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]),)
    yield "one more label", (torch.tensor([4, 1, 1, 2, 3, 2, 0, 1]),)
    yield "a large label", (torch.tensor([40, 1, 1, 2, 3, 2, 0, 1]),)
    yield "refused: a negative label", (torch.tensor([0, 1, -1, 2, 3, 2, 0, 1]),)
