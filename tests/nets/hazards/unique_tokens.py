"""A net that embeds each distinct token once: as many rows as each call has distinct tokens."""

import torch
from torch import nn

KIND = "control flow"


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 6))

    def forward(self, ids):
        tokens, places, counts = torch.unique(ids, return_inverse=True, return_counts=True)
        hidden = self.body(self.words(tokens))
        return hidden[places], hidden * counts[:, None].to(hidden.dtype).log1p()


def make():
    return Bag().eval()


def example():
    return (torch.tensor([[1, 2, 3, 1], [4, 2, 5, 6]]),)


def calls():
    yield "as many tokens", (torch.tensor([[9, 8, 7, 6], [5, 4, 4, 4]]),)
    yield "one token", (torch.full((2, 4), 3),)
    yield "all tokens differ", (torch.arange(8).reshape(2, 4),)
    yield "refused: beyond the words", (torch.full((2, 4), 20),)
