"""A net of words by their letters: convolutions of several widths, maxima, and two highways."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Letters(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.letters = nn.Embedding(70, 16, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(16, 16 * k, k, padding=k // 2) for k in (1, 2, 3, 4))
        self.transform = nn.ModuleList(nn.Linear(160, 160) for _ in range(2))
        self.gate = nn.ModuleList(nn.Linear(160, 160) for _ in range(2))
        self.out = nn.Linear(160, 48)

    def forward(self, words):
        batch, count, length = words.shape
        x = self.letters(words.view(-1, length)).transpose(1, 2)
        x = torch.cat([torch.tanh(conv(x)).amax(-1) for conv in self.convs], -1)
        for transform, gate in zip(self.transform, self.gate, strict=True):
            part = torch.sigmoid(gate(x))
            x = part * F.relu(transform(x)) + (1 - part) * x
        return self.out(x).view(batch, count, -1)


def make():
    return Letters().eval()


def words():
    lengths = torch.randint(1, 13, (2, 10, 1))
    return (torch.randint(1, 70, (2, 10, 12)) * (torch.arange(12) < lengths),)


def example():
    return words()


def calls():
    yield "fresh", words()
    yield "empty words", (torch.zeros(2, 10, 12, dtype=torch.int64),)
    yield "the first letter", (torch.ones(2, 10, 12, dtype=torch.int64),)
    yield "the last letter", (torch.full((2, 10, 12), 69),)
    yield "refused: no such letter", (torch.full((2, 10, 12), 70),)
