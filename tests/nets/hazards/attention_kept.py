"""A net that keeps its attention of the last call in an attribute: the user reads it."""

import torch
from torch import nn

KIND = "state"


class Explained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 48), nn.GELU(), nn.Linear(48, 16))
        self.attention = None

    def forward(self, x):
        query, key, value = self.qkv(self.norm(x)).chunk(3, -1)
        self.attention = (query @ key.mT / 4).softmax(-1)
        x = x + self.out(self.attention @ value)
        return x + self.mlp(x)


def make():
    return Explained().eval()


def example():
    return (torch.randn(2, 6, 16),)


def state(net):
    return net.attention is None


def read(scale):
    def use(net):
        returned = net(scale * torch.linspace(-1, 1, 192).reshape(2, 6, 16).sin())
        return returned, net.attention

    return use


def calls():
    for scale in (1.0, 5.0, -3.0):
        yield f"inputs of scale {scale}", read(scale)
