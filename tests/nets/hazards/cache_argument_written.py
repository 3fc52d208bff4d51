"""A decoder layer that writes into the cache it is given at a position from a tensor."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "state"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16))

    def forward(self, x, keys, values, position):
        query, key, value = (
            self.qkv(self.norm(x)).unflatten(-1, (3, 2, 8)).transpose(1, 3).unbind(2)
        )
        keys.index_copy_(2, position, key)
        values.index_copy_(2, position, value)
        mask = torch.arange(keys.shape[2]) <= position[:, None]
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(x)


def make():
    return Layer().eval()


def example():
    cache = torch.zeros(2, 1, 2, 6, 8)
    return torch.randn(1, 1, 16), cache[0].clone(), cache[1].clone(), torch.tensor([0])


def decoded(net):
    keys, values = torch.zeros(2, 1, 2, 6, 8).unbind(0)
    outputs = [
        net(torch.linspace(-1, step, 16)[None, None], keys, values, torch.tensor([step]))
        for step in range(6)
    ]
    return outputs, keys, values


def calls():
    yield "fresh", example()
    yield "six steps", decoded
    full = torch.randn(2, 1, 2, 6, 8)
    yield "the last place", (torch.randn(1, 1, 16), *full.clone().unbind(0), torch.tensor([5]))
    yield "refused: no such place", (torch.randn(1, 1, 16), *full.unbind(0), torch.tensor([6]))
