"""A tagger by a bidirectional LSTM of two layers over words and letters' cases."""

import torch
from torch import nn

KIND = "harmless"


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.cases = nn.Embedding(1500, 48), nn.Embedding(4, 8)
        self.lstm = nn.LSTM(56, 32, num_layers=2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 9)

    def forward(self, words, cases):
        x = torch.cat([self.words(words), self.cases(cases)], -1)
        hidden, _ = self.lstm(x)
        return self.out(hidden).log_softmax(-1)


def make():
    return Tagger().eval()


def example():
    return torch.randint(1500, (1, 12)), torch.randint(4, (1, 12))


def calls():
    yield "fresh", (torch.randint(1500, (1, 12)), torch.randint(4, (1, 12)))
    yield "first rows", (torch.zeros(1, 12).long(), torch.zeros(1, 12).long())
    yield "last rows", (torch.full((1, 12), 1499), torch.full((1, 12), 3))
    yield "refused: no such word", (torch.full((1, 12), 1500), torch.zeros(1, 12).long())
