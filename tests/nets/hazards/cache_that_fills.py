"""A decoder layer whose cache is full after 12 calls: the user's 13th raises, none before."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


class StaticCache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16))
        self.register_buffer("keys", torch.zeros(1, 2, 12, 8), persistent=False)
        self.register_buffer("values", torch.zeros(1, 2, 12, 8), persistent=False)
        self.position = 0

    def forward(self, x):
        query, key, value = self.qkv(x).unflatten(-1, (3, 2, 8)).transpose(1, 3).unbind(2)
        self.keys[:, :, self.position] = key[:, :, 0]
        self.values[:, :, self.position] = value[:, :, 0]
        self.position += 1
        mask = torch.arange(12) < self.position
        mixed = F.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask[None])
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def make():
    return StaticCache().eval()


def example():
    return (torch.randn(1, 1, 16),)


def state(net):
    return net.position, float(net.keys.abs().sum())


def steps(count):
    def use(net):
        inputs = torch.linspace(-1, 1, 16 * count).reshape(count, 1, 1, 16)
        return [net(x) for x in inputs], net.keys.clone(), net.position

    return use


def calls():
    yield "three steps", steps(3)
    yield "six more", steps(6)
    yield "refused: beyond the cache", steps(9)
