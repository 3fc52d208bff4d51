"""A mean over tokens that are no padding: NaN for a row of padding, or 0 where it is guarded."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(24)
        self.body = nn.Sequential(nn.Embedding(50, 24, padding_idx=0), nn.Linear(24, 24), nn.GELU())
        self.head = nn.Linear(24, 4)

    def forward(self, ids):
        keep = (ids != 0).unsqueeze(-1)
        h = self.body(ids) * keep
        mean = h.sum(1) / keep.sum(1)
        held = h.sum(1) / keep.sum(1).clamp(min=1)
        high = h.masked_fill(~keep, -float("inf")).amax(1)
        last = (keep.squeeze(-1).long().sum(-1) - 1).clamp(min=0)
        return self.head(self.tower(held)), mean, high, h[torch.arange(len(h)), last]


def make():
    return Pooled().eval()


def example():
    return (torch.randint(1, 50, (4, 9)),)


def calls():
    ids = torch.randint(1, 50, (4, 9))
    ids[0, 5:] = 0
    yield "padded", (ids.clone(),)
    ids[2] = 0
    yield "a row of padding", (ids.clone(),)
    ids[:, 8] = 0
    yield "all rows padded", (ids,)
    yield "padding alone", (torch.zeros(4, 9, dtype=torch.long),)
