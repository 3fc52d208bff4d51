"""A recommender of the next item: a causal transformer over histories padded with item 0."""

import torch
import torch.nn.functional as F
from torch import nn

KIND = "harmless"


class Block(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x, mask):
        batch, length, width = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, length, 3, 2, width // 2)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.relu(self.up(self.norms[1](x))))


class NextItem(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.items, self.places = nn.Embedding(800, 48, padding_idx=0), nn.Embedding(30, 48)
        self.blocks = nn.ModuleList(Block(48) for _ in range(2))
        self.norm = nn.LayerNorm(48)
        self.register_buffer("causal", torch.ones(30, 30).tril().bool())

    def forward(self, history, candidates):
        is_item = history != 0
        x = self.items(history) * 48**0.5 + self.places.weight
        own = torch.eye(30, dtype=torch.bool)
        mask = (self.causal & is_item[:, None, None, :]) | own
        for block in self.blocks:
            x = block(x * is_item.unsqueeze(-1), mask)
        return torch.einsum("bd,bnd->bn", self.norm(x)[:, -1], self.items(candidates))


def make():
    return NextItem().eval()


def histories(lengths):
    items = torch.randint(1, 800, (4, 30))
    return items * (torch.arange(30) >= 30 - torch.tensor(lengths).unsqueeze(1))


def example():
    return histories([30, 20, 11, 3]), torch.randint(1, 800, (4, 50))


def calls():
    yield "fresh", (histories([3, 30, 5, 29]), torch.randint(1, 800, (4, 50)))
    yield "all full", (histories([30] * 4), torch.randint(1, 800, (4, 50)))
    yield "one item each", (histories([1] * 4), torch.randint(1, 800, (4, 50)))
    yield "no history", (histories([0] * 4), torch.randint(1, 800, (4, 50)))
    yield "the last item", (torch.full((4, 30), 799), torch.full((4, 50), 799))
