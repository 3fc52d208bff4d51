"""An encoder that drops its mask where no token is padding: padded batches need it again."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "control flow"


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32))

    def forward(self, x, mask):
        query, key, value = self.qkv(self.first(x)).unflatten(-1, (3, 4, 8)).unbind(2)
        heads = (each.transpose(1, 2) for each in (query, key, value))
        mixed = F.scaled_dot_product_attention(*heads, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.mlp(self.second(x))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, input_ids, attention_mask):
        mask = None
        if not torch.all(attention_mask == 1):
            mask = attention_mask[:, None, None, :].bool()
        x = self.words(input_ids)
        for layer in self.layers:
            x = layer(x, mask)
        return x


def make():
    return Encoder().eval()


def example():
    ids = torch.randint(0, 50, (2, 12))
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def calls():
    for length in (12, 11, 6, 1):
        ids = torch.randint(0, 50, (2, 12))
        mask = torch.ones_like(ids)
        mask[1, length:] = 0
        yield f"{length} tokens in the second row", {"input_ids": ids, "attention_mask": mask}
