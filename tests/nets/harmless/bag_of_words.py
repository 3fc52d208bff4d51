"""A classifier of texts by mean vectors of words, pairs and triples of them, padded with zeros."""

import torch
from torch import nn

KIND = "harmless"


class BagOfWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(3000, 32, mode="sum", padding_idx=0)
        self.pairs, self.triples = nn.Embedding(1024, 32), nn.Embedding(1024, 32)
        self.first = nn.Linear(96, 64)
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
        self.norms = nn.ModuleList(nn.LayerNorm(64) for _ in range(4))
        self.out = nn.Linear(64, 6)

    def forward(self, ids):
        count = (ids != 0).sum(1, keepdim=True).clamp(min=1)
        pairs = (ids[:, :-1] * 31 + ids[:, 1:]).remainder(1024)
        triples = (pairs[:, :-1] * 31 + ids[:, 2:]).remainder(1024)
        sums = [self.words(ids), self.pairs(pairs).sum(1), self.triples(triples).sum(1)]
        x = self.first(torch.cat([total / count for total in sums], 1))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.relu(layer(norm(x)))
        return self.out(x).log_softmax(-1)


def make():
    return BagOfWords().eval()


def texts(*lengths):
    return (torch.randint(1, 3000, (4, 24)) * (torch.arange(24) < torch.tensor(lengths)[:, None]),)


def example():
    return texts(24, 13, 4, 8)


def calls():
    yield "fresh", texts(1, 2, 23, 24)
    yield "all full", texts(24, 24, 24, 24)
    yield "empty texts", texts(0, 0, 0, 0)
    yield "the last word", (torch.full((4, 24), 2999),)
    yield "the first word", (torch.ones(4, 24, dtype=torch.int64),)
    yield "refused: no such word", (torch.full((4, 24), 3000),)
