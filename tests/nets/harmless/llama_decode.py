"""A step of a decoder like Llama: caches in lists of pairs, written at a place by index_copy."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"

WIDTH, HEADS, GROUPS, DEPTH, ROOM = 96, 6, 2, 16, 64


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, eps=1e-5), nn.RMSNorm(WIDTH, eps=1e-5)
        self.qkv = nn.Linear(WIDTH, (HEADS + 2 * GROUPS) * DEPTH, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)
        self.w13 = nn.Linear(WIDTH, 2 * 256, bias=False)
        self.w2 = nn.Linear(256, WIDTH, bias=False)

    def forward(self, x, angle, place, mask, keys, values):
        heads = self.qkv(self.norm1(x)).view(len(x), 1, -1, DEPTH).transpose(1, 2)
        q, k, v = heads.split([HEADS, GROUPS, GROUPS], dim=1)
        q, k = self.turned(q, angle), self.turned(k, angle)
        keys, values = keys.index_copy(2, place, k), values.index_copy(2, place, v)
        mixed = F.scaled_dot_product_attention(
            q,
            keys.repeat_interleave(HEADS // GROUPS, 1),
            values.repeat_interleave(HEADS // GROUPS, 1),
            attn_mask=mask,
        )
        x = x + self.o(mixed.transpose(1, 2).flatten(2))
        gate, up = self.w13(self.norm2(x)).chunk(2, -1)
        return x + self.w2(F.silu(gate) * up), (keys, values)

    def turned(self, x, angle):
        even, odd = x[..., ::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(700, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 700, bias=False)
        self.register_buffer("rate", 10000 ** -(torch.arange(0, DEPTH, 2) / DEPTH))

    def forward(self, ids, place, caches):
        x, new = self.words(ids), []
        angle = place.to(x.dtype) * self.rate
        mask = (torch.arange(ROOM, device=ids.device) <= place).view(1, 1, 1, ROOM)
        for block, (keys, values) in zip(self.blocks, caches, strict=True):
            x, cache = block(x, angle, place, mask, keys, values)
            new.append(cache)
        return self.head(self.norm(x)), new


def make():
    return Llama().eval()


def step(place, scale=1.0):
    rows = scale * (torch.arange(ROOM).view(ROOM, 1) < place)
    caches = [tuple(torch.randn(1, GROUPS, ROOM, DEPTH) * rows for _ in range(2)) for _ in range(2)]
    return torch.randint(700, (1, 1)), torch.tensor([place]), caches


def example():
    return step(20)


def calls():
    for place in (0, 1, 19, 21, 40, 62, 63):
        yield f"at place {place}", step(place)
    yield "large caches", step(30, 10.0)
    yield "the first word", (torch.zeros(1, 1).long(), *step(3)[1:])
    yield "the last word", (torch.full((1, 1), 699), *step(3)[1:])
