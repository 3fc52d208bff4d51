"""A classifier of texts by convolutions over three, four and five words, and their maxima."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class TextConvnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(4000, 64, padding_idx=1)
        self.convs = nn.ModuleList(nn.Conv1d(64, 48, kernel) for kernel in (3, 4, 5))
        self.dropout, self.out = nn.Dropout(0.5), nn.Linear(144, 2)

    def forward(self, ids):
        x = self.words(ids).permute(0, 2, 1)
        maxima = [F.relu(conv(x)).max(dim=2).values for conv in self.convs]
        return self.out(self.dropout(torch.cat(maxima, dim=1)))


def make():
    return TextConvnet().eval()


def example():
    return (torch.randint(4000, (2, 40)),)


def calls():
    yield "fresh", (torch.randint(4000, (2, 40)),)
    yield "the first word", (torch.zeros(2, 40).long(),)
    yield "padding", (torch.ones(2, 40, dtype=torch.int64),)
    yield "the last word", (torch.full((2, 40), 3999),)
    yield "refused: no such word", (torch.full((2, 40), 4000),)
