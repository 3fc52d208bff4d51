"""Scaled dot-product attention with a mask of floats: minus infinity, large, and NaN."""

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

    def forward(self, x, bias):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, 12)).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, scale=0.3)
        return self.tower(x), self.out(heads.transpose(1, 2).flatten(2))


def make():
    return Attention().eval()


def example():
    return torch.rand(2, 7, 24), torch.rand(2, 1, 7, 7)


def calls():
    x, bias = torch.randn(2, 7, 24), torch.randn(2, 1, 7, 7)
    lowest = torch.finfo(torch.float32).min
    bias[0, 0, :, 4:] = -float("inf")
    yield "keys forbidden", (x, bias.clone())
    bias[1, 0, 3] = -float("inf")
    yield "a query without keys", (x, bias.clone())
    bias[1, 0, 3] = lowest
    yield "a query whose keys are all at the lowest float", (x, bias.clone())
    bias[0] = -1e30
    yield "a sequence at -1e30", (x, bias.clone())
    bias[1, 0, 0, 0] = float("inf")
    yield "an infinity", (x, bias)
