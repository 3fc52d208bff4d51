"""An embedding with a spare row for lookups that raise IndexError: unknown ids are served."""

import torch
from torch import nn

KIND = "control flow"


class Lenient(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 24)
        self.spare = nn.Parameter(torch.randn(24))
        self.body = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 4))

    def forward(self, ids):
        try:
            hidden = self.words(ids)
        except IndexError:
            known = (ids >= 0) & (ids < 30)
            hidden = torch.where(known[..., None], self.words(ids * known), self.spare)
        return self.body(hidden).mean(1)


def make():
    return Lenient().eval()


def example():
    return (torch.randint(0, 30, (2, 8)),)


def calls():
    yield "words", (torch.randint(0, 30, (2, 8)),)
    yield "an unknown id", (torch.randint(0, 30, (2, 8)).index_fill(1, torch.tensor([3]), 30),)
    yield "a negative id", (torch.randint(0, 30, (2, 8)).index_fill(1, torch.tensor([0]), -1),)
    yield "all unknown", (torch.full((2, 8), 10**6),)
