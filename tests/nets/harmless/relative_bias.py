"""An encoder like T5: RMS norm, no scale, and a bias by buckets of distance at each call."""

import math

import torch
from torch import nn

KIND = "harmless"

WIDTH, HEADS, BUCKETS = 64, 4, 16


def buckets(length):
    """Return the bucket of the distance of all pairs of places: exact ones, then logarithmic."""
    place = torch.arange(length)
    distance = place[None, :] - place[:, None]
    half, exact = BUCKETS // 2, BUCKETS // 4
    side = (distance > 0).long() * half
    distance = distance.abs()
    far = torch.log(distance.float().clamp(min=1) / exact) / math.log(128 / exact)
    far = (exact + (far * (half - exact)).long()).clamp(max=half - 1)
    return side + torch.where(distance < exact, distance, far)


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = Norm(), Norm()
        self.qkv, self.o = (nn.Linear(WIDTH, n * WIDTH, bias=False) for n in (3, 1))
        self.wi, self.wo = nn.Linear(WIDTH, 128, bias=False), nn.Linear(128, WIDTH, bias=False)

    def forward(self, x, bias):
        batch, length, _ = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, HEADS, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        weights = torch.softmax(q @ k.transpose(3, 2) + bias, -1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.wo(torch.relu(self.wi(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.bias = nn.Embedding(1200, WIDTH), nn.Embedding(BUCKETS, HEADS)
        self.layers, self.norm = nn.ModuleList(Layer() for _ in range(3)), Norm()

    def forward(self, input_ids, attention_mask):
        x = self.words(input_ids)
        bias = self.bias(buckets(input_ids.shape[1])).permute(2, 0, 1).unsqueeze(0)
        bias = bias.masked_fill(attention_mask[:, None, None, :] == 0, -1e9)
        for layer in self.layers:
            x = layer(x, bias)
        return self.norm(x)


def make():
    return Encoder().eval()


def texts(*lengths):
    mask = (torch.arange(28) < torch.tensor(lengths)[:, None]).long()
    return torch.randint(1, 1200, (len(lengths), 28)) * mask, mask


def example():
    return texts(28, 15)


def calls():
    yield "fresh", texts(4, 27)
    yield "no padding", texts(28, 28)
    yield "one word each", texts(1, 1)
    yield "the last word", (torch.full((2, 28), 1199), texts(28, 10)[1])
