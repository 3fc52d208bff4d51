"""Losses whose targets are all ignored, and vectors of zeros that are normalised."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Losses(nn.Module):
    def forward(self, x, targets):
        return (
            F.cross_entropy(x, targets, ignore_index=-100, label_smoothing=0.1),
            F.cross_entropy(x, targets, ignore_index=-100, reduction="none"),
            F.normalize(x, dim=-1),
            F.cosine_similarity(x, x.flip(0)),
            torch.logsumexp(x, -1),
            F.log_softmax(x * 1e3, -1),
        )


def make():
    return Losses().eval()


def example():
    return torch.randn(6, 8), torch.tensor([0, 7, 3, 1, 2, 5])


def calls():
    yield "one ignored", (torch.randn(6, 8), torch.tensor([0, -100, 3, 1, 2, 5]))
    yield "all ignored", (torch.randn(6, 8), torch.full((6,), -100))
    yield "zeros", (torch.zeros(6, 8), torch.tensor([0, 7, 3, 1, 2, 5]))
    yield "rows of -inf", (torch.full((6, 8), -float("inf")), torch.tensor([0, 7, 3, 1, 2, 5]))
    yield "a target that is none", (torch.randn(6, 8), torch.tensor([0, 8, 3, 1, 2, 5]))
