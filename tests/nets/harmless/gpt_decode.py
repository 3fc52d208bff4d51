"""A step of a decoder like GPT at any place of caches, which come as arguments and return new."""

import torch
from torch import nn

KIND = "harmless"

WIDTH, HEADS, ROOM, LAYERS = 64, 4, 48, 2


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(
            nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, x, keys, values, place):
        q, k, v = self.qkv(self.ln1(x)).view(len(x), 1, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        rows = torch.arange(ROOM, device=x.device)
        is_here = (rows == place).view(1, 1, ROOM, 1)
        keys, values = torch.where(is_here, k, keys), torch.where(is_here, v, values)
        scores = q @ keys.mT / (WIDTH // HEADS) ** 0.5
        scores = scores.masked_fill(rows > place, float("-inf"))
        mixed = (scores.softmax(-1) @ values).transpose(1, 2).reshape(len(x), 1, WIDTH)
        x = x + self.proj(mixed)
        return x + self.mlp(self.ln2(x)), keys, values


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(600, WIDTH), nn.Embedding(ROOM, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 600, bias=False)

    def forward(self, ids, place, keys, values):
        x = self.wte(ids) + self.wpe(place)
        own = [(k, v) for k, v in zip(keys.unbind(0), values.unbind(0), strict=True)]
        for number, block in enumerate(self.blocks):
            x, *own[number] = block(x, *own[number], place)
        keys, values = (torch.stack(parts) for parts in zip(*own, strict=True))
        return self.head(self.ln(x))[:, -1], keys, values


def make():
    return Decoder().eval()


def step(place, word=None):
    rows = torch.arange(ROOM).view(ROOM, 1) < place
    ids = torch.randint(600, (1, 1)) if word is None else torch.tensor([[word]])
    caches = [torch.randn(LAYERS, 1, HEADS, ROOM, WIDTH // HEADS) * rows for _ in range(2)]
    return ids, torch.tensor([place]), *caches


def example():
    return step(17)


def calls():
    for place in (0, 1, 16, 18, 31, 46, 47):
        yield f"at place {place}", step(place)
    yield "the first word", step(9, 0)
    yield "the last word", step(9, 599)
    yield "refused: no room", step(48)
