"""A decoder that writes keys and values into a cache object at its own place, step by step."""

import torch
from torch import nn

KIND = "form"


class Cache:
    def __init__(self, length) -> None:
        self.keys, self.values = torch.zeros(2, length, 8)
        self.count = 0


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, -1)
        cache.keys[cache.count : cache.count + len(x)] = k
        cache.values[cache.count : cache.count + len(x)] = v
        cache.count += len(x)
        scores = q @ cache.keys[: cache.count].mT
        return self.out(scores.softmax(-1) @ cache.values[: cache.count])


def make():
    return Decoder().eval()


def example():
    return torch.randn(1, 8), Cache(6)


def steps(net):
    cache = Cache(6)
    outputs = [net(row[None], cache) for row in torch.eye(6, 8)]
    return outputs, cache.keys, cache.count


def in_parts(net):
    cache = Cache(6)
    return net(torch.ones(4, 8), cache), net(torch.zeros(2, 8), cache), cache.values


def calls():
    x = torch.randn(4, 8)
    yield "a prompt", (x, Cache(6))
    yield "step by step", steps
    yield "in two parts", in_parts
    yield "refused: a cache that is too short", (x, Cache(3))
