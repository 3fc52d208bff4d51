"""A reranker by late interaction: each word of a query picks its best word of each document."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Reranker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(2500, 64)
        self.mix = nn.Sequential(nn.Conv1d(64, 64, 3, padding=1), nn.GELU(), nn.Conv1d(64, 64, 1))
        self.norm, self.project = nn.LayerNorm(64), nn.Linear(64, 32, bias=False)

    def encode(self, ids):
        x = self.words(ids)
        x = self.norm(x + self.mix(x.transpose(1, 2)).transpose(1, 2))
        return F.normalize(self.project(x), dim=-1)

    def forward(self, query, documents, document_mask):
        queries, words = self.encode(query), self.encode(documents)
        products = torch.einsum("qd,nwd->nqw", queries[0], words)
        products = products.masked_fill(~document_mask.unsqueeze(1), -1e4)
        return products.max(-1).values.sum(-1)


def make():
    return Reranker().eval()


def arguments(*lengths):
    mask = torch.arange(32) < torch.tensor(lengths)[:, None]
    return torch.randint(2500, (1, 8)), torch.randint(2500, (8, 32)), mask


def example():
    return arguments(32, 20, 10, 5, 25, 16, 30, 8)


def calls():
    yield "fresh", arguments(1, 2, 3, 4, 29, 30, 31, 32)
    yield "no padding", arguments(*[32] * 8)
    yield "one word each", arguments(*[1] * 8)
    query, documents, mask = arguments(*range(4, 12))
    yield "the first word", (0 * query, documents, mask)
    yield "the last word", (query, torch.full((8, 32), 2499), mask)
