"""Sentences as unit vectors for search: the mean over words that are no padding."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width, heads) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

    def forward(self, x, mask):
        q, k, v = (
            p.unflatten(-1, (self.heads, -1)).transpose(1, 2) for p in self.qkv(x).chunk(3, -1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norms[0](x + self.out(mixed.transpose(1, 2).flatten(2)))
        return self.norms[1](x + self.mlp(x))


class Sentences(nn.Module):
    def __init__(self, width=64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(1500, width), nn.Embedding(32, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, 4) for _ in range(2))

    def forward(self, input_ids, attention_mask=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        x = self.norm(self.words(input_ids) + self.places.weight[: input_ids.shape[1]])
        mask = attention_mask[:, None, None, :].bool()
        for block in self.blocks:
            x = block(x, mask)
        kept = attention_mask.unsqueeze(-1).to(x.dtype)
        return F.normalize((x * kept).sum(1) / kept.sum(1).clamp(min=1e-9), p=2, dim=1)


def make():
    return Sentences().eval()


def texts(*lengths):
    return {
        "input_ids": torch.randint(1500, (4, 16)),
        "attention_mask": (torch.arange(16) < torch.tensor(lengths)[:, None]).long(),
    }


def example():
    return texts(16, 9, 4, 12)


def calls():
    yield "fresh", texts(1, 2, 15, 16)
    yield "no padding", texts(16, 16, 16, 16)
    yield "one word each", texts(1, 1, 1, 1)
    yield "without a mask", {"input_ids": torch.randint(1500, (4, 16))}
    yield "the last word", texts(16, 9, 4, 12) | {"input_ids": torch.full((4, 16), 1499)}
