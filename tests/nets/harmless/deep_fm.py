"""A factorisation machine with a deep part: sums of squares of embeddings of ten fields."""

import torch
from torch import nn

KIND = "harmless"


class DeepFM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(500, 1), nn.Embedding(500, 10)
        self.bias = nn.Parameter(torch.zeros(1))
        self.deep = nn.Sequential(
            nn.Linear(100, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32), nn.ReLU()
        )
        self.out = nn.Linear(32, 1, bias=False)

    def forward(self, ids, values):
        weights = values.unsqueeze(-1)
        linear = (self.first(ids) * weights).sum(1)
        vectors = self.second(ids) * weights
        pairs = 0.5 * (vectors.sum(1).pow(2) - vectors.pow(2).sum(1)).sum(1, keepdim=True)
        logit = self.bias + linear + pairs + self.out(self.deep(vectors.flatten(1)))
        return {"logit": logit, "probability": torch.sigmoid(logit)}


def make():
    return DeepFM().eval()


def ids():
    return torch.randint(50, (256, 10)) + 50 * torch.arange(10)


def example():
    return ids(), torch.ones(256, 10)


def calls():
    yield "fresh", (ids(), torch.ones(256, 10))
    yield "values between zero and one", (ids(), torch.rand(256, 10))
    yield "no values", (ids(), torch.zeros(256, 10))
    yield "first row", (torch.zeros(256, 10).long(), torch.ones(256, 10))
    yield "last row", (torch.full((256, 10), 499), torch.ones(256, 10))
    yield "refused: a row too far", (torch.full((256, 10), 500), torch.ones(256, 10))
