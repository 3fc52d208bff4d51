"""An encoder like BERT with ids, kinds of tokens, a mask of ones and zeros, and a pooler."""

import math

import torch
from torch import nn

KIND = "harmless"

WIDTH, HEADS, LENGTH = 64, 4, 24


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.value, self.dense = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-12), nn.LayerNorm(WIDTH, eps=1e-12)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
        self.dropout = nn.Dropout(0.1)

    def split(self, x):
        return x.view(*x.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = map(self.split, (self.query(x), self.key(x), self.value(x)))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(WIDTH // HEADS)
        weights = self.dropout(nn.functional.softmax(scores + mask, dim=-1))
        mixed = torch.matmul(weights, value).permute(0, 2, 1, 3).contiguous().view(x.shape)
        x = self.norm1(x + self.dropout(self.dense(mixed)))
        return self.norm2(x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(2000, WIDTH, padding_idx=0)
        self.places, self.kinds = nn.Embedding(64, WIDTH), nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(Layer() for _ in range(3))
        self.pooler, self.classes = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 3)
        self.register_buffer("ids", torch.arange(64).unsqueeze(0), persistent=False)

    def forward(self, input_ids, attention_mask, token_type_ids):
        place = self.places(self.ids[:, : input_ids.shape[1]])
        x = self.norm(self.words(input_ids) + place + self.kinds(token_type_ids))
        mask = attention_mask[:, None, None, :].to(x.dtype)
        mask = (1.0 - mask) * torch.finfo(x.dtype).min
        for layer in self.layers:
            x = layer(x, mask)
        return self.classes(torch.tanh(self.pooler(x[:, 0])))


def make():
    return Bert().eval()


def texts(*lengths):
    is_word = (torch.arange(LENGTH) < torch.tensor(lengths)[:, None]).long()
    kinds = (torch.arange(LENGTH) >= LENGTH // 3).long() * is_word
    return {
        "input_ids": torch.randint(1, 2000, (len(lengths), LENGTH)) * is_word,
        "attention_mask": is_word,
        "token_type_ids": kinds,
    }


def example():
    return texts(24, 10)


def calls():
    yield "fresh", texts(5, 24)
    yield "no padding", texts(24, 24)
    yield "one word each", texts(1, 1)
    yield "the last word of the table", texts(24, 12) | {"input_ids": torch.full((2, 24), 1999)}
    yield "padding in front", {name: x.flip(1) for name, x in texts(7, 20).items()}
    yield "refused: no such word", texts(24, 12) | {"input_ids": torch.full((2, 24), 2000)}
