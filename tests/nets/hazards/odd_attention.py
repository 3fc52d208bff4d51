"""Attention with fewer keys and values than queries, a scale of its own, and groups of heads."""

import torch
from torch import nn
from torch.nn import functional as F

KIND = "values"


class Attention(nn.Module):
    def forward(self, q, k, v, is_kept):
        masked = F.scaled_dot_product_attention(
            q, k, v, attn_mask=is_kept[:, None, None], scale=0.5, enable_gqa=True
        )
        return masked, F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def make():
    return Attention().eval()


def example():
    is_kept = torch.ones(2, 7, dtype=torch.bool)
    return torch.randn(2, 8, 5, 16), torch.randn(2, 2, 7, 16), torch.randn(2, 2, 7, 16), is_kept


def calls():
    q, k, v, is_kept = example()
    yield "ragged", (q, k, v, torch.arange(7) < torch.tensor([[3], [6]]))
    yield "one of nothing", (q, k, v, torch.arange(7) < torch.tensor([[0], [6]]))
    yield "large", (q * 100, k * 100, v, is_kept)
