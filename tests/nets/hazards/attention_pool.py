"""Pooling by attention over kept tokens: weights of a row without tokens are NaN."""

import torch
from torch import nn

KIND = "values"


class Pool(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score, self.value = nn.Linear(16, 1), nn.Linear(16, 8)

    def forward(self, x, lengths):
        places = torch.arange(x.shape[1])
        keep = places < lengths.unsqueeze(-1)
        scores = self.score(x).squeeze(-1).masked_fill(~keep, -float("inf"))
        weights = scores.softmax(-1)
        peak = scores.max(-1)
        return (weights.unsqueeze(1) @ self.value(x)).squeeze(1), weights, peak.values, keep.sum(-1)


def make():
    return Pool().eval()


def example():
    return torch.rand(3, 8, 16), torch.tensor([8, 8, 8])


def calls():
    x = torch.randn(3, 8, 16)
    yield "shorter", (x, torch.tensor([3, 8, 1]))
    yield "an empty one", (x, torch.tensor([0, 8, 5]))
    yield "longer than there is", (x, torch.tensor([9, 100, 5]))
    yield "a negative length", (x, torch.tensor([-1, 4, 2**33]))
