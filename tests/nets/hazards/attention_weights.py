"""Attention that returns its weights: 0 on padding, and NaN where all is padding."""

import torch
from torch import nn

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Attend(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(32)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x, memory, padding):
        mean, weights = self.attention(x, memory, memory, key_padding_mask=padding)
        out, heads = self.attention(
            x, memory, memory, key_padding_mask=padding, average_attn_weights=False
        )
        return self.tower(x), mean.contiguous(), weights, heads.amax(1), (weights > 0).sum(-1)


def make():
    return Attend().eval()


def example():
    return torch.rand(2, 5, 32), torch.rand(2, 9, 32), torch.zeros(2, 9, dtype=torch.bool)


def calls():
    x, memory = torch.randn(2, 5, 32), torch.randn(2, 9, 32)
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[0, 4:] = True
    yield "padded", (x, memory, padding.clone())
    padding[1] = True
    yield "one of padding alone", (x, memory, padding.clone())
    padding[0] = True
    padding[0, 3] = False
    yield "one key left", (x, memory, padding)
    yield "all padding", (x, memory, torch.ones(2, 9, dtype=torch.bool))
