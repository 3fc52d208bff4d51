"""Bags of embeddings given by offsets: an empty bag is 0, and bags need not be in use."""

import torch
from torch import nn

KIND = "indices"


class Bags(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sums = nn.EmbeddingBag(40, 8, mode="sum")
        self.means = nn.EmbeddingBag(40, 8, mode="mean", padding_idx=0)
        self.peaks = nn.EmbeddingBag(40, 8, mode="max")

    def forward(self, ids, offsets, weights):
        return (
            self.sums(ids, offsets, per_sample_weights=weights),
            self.means(ids, offsets),
            self.peaks(ids, offsets),
        )


def make():
    return Bags().eval()


def example():
    return torch.randint(1, 40, (12,)), torch.tensor([0, 3, 7, 9]), torch.rand(12)


def calls():
    ids, weights = torch.randint(0, 40, (12,)), torch.randn(12)
    yield "an empty bag between", (ids, torch.tensor([0, 3, 3, 9]), weights)
    yield "empty at both ends", (ids, torch.tensor([0, 0, 5, 12]), weights)
    yield "padding alone", (ids * 0, torch.tensor([0, 3, 7, 9]), weights)
    yield "one bag", (ids, torch.tensor([0, 12, 12, 12]), weights * 0)
    yield "refused: id 40", (ids + 40, torch.tensor([0, 3, 7, 9]), weights)
    yield "refused: negative id", (ids - 40, torch.tensor([0, 3, 7, 9]), weights)
    yield "refused: first offset 1", (ids, torch.tensor([1, 3, 7, 9]), weights)
