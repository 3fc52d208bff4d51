"""A decoder like GPT that reads a prompt: logits of all places, and its keys and values."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"

WIDTH, HEADS = 64, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        parts = self.qkv(self.ln1(x)).split(WIDTH, dim=2)
        q, k, v = (p.view(batch, length, HEADS, -1).transpose(1, 2) for p in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(mixed.transpose(1, 2).contiguous().view(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh")), (
            k.contiguous(),
            v.contiguous(),
        )


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(600, WIDTH), nn.Embedding(64, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 600, bias=False)
        nn.init.normal_(self.wte.weight, std=0.2)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        caches = []
        for block in self.blocks:
            x, cache = block(x)
            caches.append(cache)
        return self.head(self.ln(x)), caches


def make():
    return Gpt().eval()


def example():
    return (torch.randint(600, (1, 32)),)


def calls():
    yield "fresh", (torch.randint(600, (1, 32)),)
    yield "the first word", (torch.zeros(1, 32, dtype=torch.int64),)
    yield "the last word", (torch.full((1, 32), 599),)
    yield "a repeated prompt", (torch.randint(600, (1, 8)).repeat(1, 4),)
    yield "refused: no such word", (torch.full((1, 32), 600),)
    yield "refused: a word below zero", (torch.full((1, 32), -1),)
