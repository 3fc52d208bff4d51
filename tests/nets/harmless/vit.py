"""A vision transformer: patches, a class token, learned places, blocks with norms first."""

import torch
from torch import nn

KIND = "harmless"


class Attention(nn.Module):
    def __init__(self, width, heads) -> None:
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        weights = (q * self.scale @ k.transpose(-2, -1)).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attention = Attention(width, 4)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, width=64) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.cls = nn.Parameter(0.1 * torch.randn(1, 1, width))
        self.places = nn.Parameter(0.1 * torch.randn(1, 17, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(3)))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, 10)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def make():
    return VisionTransformer().eval()


def example():
    return (torch.randn(1, 3, 32, 32),)


def calls():
    yield "fresh", (torch.randn(1, 3, 32, 32),)
    yield "small", (1e-3 * torch.randn(1, 3, 32, 32),)
    yield "large", (100 * torch.randn(1, 3, 32, 32),)
    yield "black", (torch.zeros(1, 3, 32, 32),)
