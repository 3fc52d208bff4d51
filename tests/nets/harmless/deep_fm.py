"""A factorisation machine with a deep part: sums of squares of embeddings of ten fields."""

import torch
from torch import nn

KIND = "harmless"


class DeepFM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Embedding(500, 1), nn.Embedding(500, 10)
        self.bias = nn.Parameter(torch.zeros(1))
        self.first_layer = nn.Linear(100, 48)
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(4))
        self.norms = nn.ModuleList(nn.BatchNorm1d(48) for _ in range(4))
        self.out = nn.Linear(48, 1, bias=False)

    def forward(self, ids, values):
        weights = values.unsqueeze(-1)
        linear = (self.first(ids) * weights).sum(1)
        vectors = self.second(ids) * weights
        pairs = 0.5 * (vectors.sum(1).pow(2) - vectors.pow(2).sum(1)).sum(1, keepdim=True)
        x = torch.relu(self.first_layer(vectors.flatten(1)))
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + torch.relu(norm(layer(x)))
        logit = self.bias + linear + pairs + self.out(x)
        return {"logit": logit, "probability": torch.sigmoid(logit)}


def make():
    return DeepFM().eval()


def ids():
    return torch.randint(50, (8, 10)) + 50 * torch.arange(10)


def example():
    return ids(), torch.ones(8, 10)


def calls():
    yield "fresh", (ids(), torch.ones(8, 10))
    yield "values between zero and one", (ids(), torch.rand(8, 10))
    yield "no values", (ids(), torch.zeros(8, 10))
    yield "first row", (torch.zeros(8, 10).long(), torch.ones(8, 10))
    yield "last row", (torch.full((8, 10), 499), torch.ones(8, 10))
    yield "refused: a row too far", (torch.full((8, 10), 500), torch.ones(8, 10))
