"""A decoder like Llama: rotary places, RMS norm, fewer heads of keys, SwiGLU; the last logits."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"

WIDTH, HEADS, GROUPS, DEPTH = 64, 4, 2, 16


class RmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(1 + 0.1 * torch.randn(WIDTH))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def turned(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-right, left), dim=-1) * sin


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = RmsNorm(), RmsNorm()
        self.q = nn.Linear(WIDTH, HEADS * DEPTH, bias=False)
        self.k = nn.Linear(WIDTH, GROUPS * DEPTH, bias=False)
        self.v = nn.Linear(WIDTH, GROUPS * DEPTH, bias=False)
        self.o = nn.Linear(HEADS * DEPTH, WIDTH, bias=False)
        self.gate = nn.Linear(WIDTH, 160, bias=False)
        self.up = nn.Linear(WIDTH, 160, bias=False)
        self.down = nn.Linear(160, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        own = self.norm1(x)
        q = self.q(own).view(batch, length, HEADS, DEPTH).transpose(1, 2)
        k = self.k(own).view(batch, length, GROUPS, DEPTH).transpose(1, 2)
        v = self.v(own).view(batch, length, GROUPS, DEPTH).transpose(1, 2)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k = k.repeat_interleave(HEADS // GROUPS, 1)
        v = v.repeat_interleave(HEADS // GROUPS, 1)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, length, -1))
        own = self.norm2(x)
        return x + self.down(F.silu(self.gate(own)) * self.up(own))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(500, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm, self.head = RmsNorm(), nn.Linear(WIDTH, 500, bias=False)
        rate = 1.0 / (10000 ** (torch.arange(0, DEPTH, 2).float() / DEPTH))
        self.register_buffer("rate", rate, persistent=False)

    def forward(self, ids, position_ids):
        x = self.words(ids)
        angle = position_ids[:, None, :, None].to(x.dtype) * self.rate
        angle = torch.cat((angle, angle), dim=-1)
        cos, sin = angle.cos(), angle.sin()
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x[:, -1:]))


def make():
    return Llama().eval()


def example():
    return torch.randint(500, (1, 24)), torch.arange(24).unsqueeze(0)


def calls():
    places = torch.arange(24).unsqueeze(0)
    yield "fresh", (torch.randint(500, (1, 24)), places)
    yield "the first word", (torch.zeros(1, 24).long(), places)
    yield "the last word", (torch.full((1, 24), 499), places)
    yield "later places", (torch.randint(500, (1, 24)), places + 40)
    yield "far places", (torch.randint(500, (1, 24)), places + 500)
