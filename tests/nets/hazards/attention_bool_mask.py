"""Scaled dot-product attention with a mask of booleans that may forbid every key to a query."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


def _tower(width):
    layers = [(nn.Linear(width, width), nn.LayerNorm(width), nn.GELU()) for _ in range(8)]
    return nn.Sequential(*[layer for three in layers for layer in three])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower = _tower(24)
        self.qkv, self.out = nn.Linear(24, 72), nn.Linear(24, 24)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 12)).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.tower(x), self.out(heads.transpose(1, 2).flatten(2))


def make():
    return Attention().eval()


def example():
    return torch.rand(2, 7, 24), torch.ones(2, 1, 7, 7, dtype=torch.bool)


def calls():
    x, mask = torch.randn(2, 7, 24), torch.ones(2, 1, 7, 7, dtype=torch.bool)
    yield "causal", (x, mask.tril())
    yield "the diagonal alone", (x, torch.eye(7, dtype=torch.bool).expand(2, 1, 7, 7).contiguous())
    mask[1, 0, 3] = False
    yield "one query without keys", (x, mask.clone())
    mask[0] = False
    yield "a sequence without keys", (x, mask)
    yield "no keys at all", (x, torch.zeros(2, 1, 7, 7, dtype=torch.bool))
